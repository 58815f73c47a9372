package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// page is the data of layout.html.
type page struct {
	Title  string
	Path   string // below /docs
	Root   string // relative path to /docs/
	Body   template.HTML
	Viewer *viewer
}

// viewer is the reference page of one OpenAPI document.
type viewer struct {
	Document string // file name of the document
	Try      bool   // whether the page can send requests
}

// link is an entry of the navigation. Path is below /docs; the Markdown file of a text has the same path plus .md.
type link struct{ Path, Text string }

// entry is a link as one page shows it.
type entry struct {
	Page       page
	Path, Text string
}

var (
	guideLinks = []link{
		{"/guides/conventions", "Conventions"},
		{"/guides/authentication", "Authentication"},
		{"/guides/devices", "Devices"},
		{"/guides/time-windows", "Time windows"},
		{"/guides/paging", "Paging"},
		{"/guides/csv", "CSV export"},
		{"/guides/idempotency", "Changes and idempotency"},
		{"/guides/rate-limits", "Rate limits"},
		{"/guides/late-data", "Late data"},
		{"/guides/uploads", "Uploads"},
	}
	ruleLinks     = []link{{"/contract", "Contract"}, {"/glossary", "Glossary"}}
	documentLinks = []link{
		{"/openapi.yaml", "openapi.yaml"},
		{"/openapi.json", "openapi.json"},
		{"/receiver.yaml", "receiver.yaml"},
		{"/receiver.json", "receiver.json"},
	}
)

var layouts = template.Must(template.New("").Funcs(template.FuncMap{
	"guides":    func() []link { return guideLinks },
	"rules":     func() []link { return ruleLinks },
	"documents": func() []link { return documentLinks },
	"entry":     func(p page, path, text string) entry { return entry{p, path, text} },
}).ParseFS(files, "web/*.html"))

// addPage renders a page into the layout. Its links are relative, so that the pages work under any address that a proxy
// gives them.
func (s *site) addPage(path string, p page) error {
	p.Path, p.Root = path, rootOf(path)
	var out bytes.Buffer
	if err := layouts.ExecuteTemplate(&out, "layout.html", p); err != nil {
		return fmt.Errorf("rendering %s: %w", path, err)
	}
	f := newFile(htmlType, out.Bytes())
	f.policy = policy(p.Viewer, s.options.PublicURL)
	s.files[prefix+path] = f
	return nil
}

// rootOf returns the relative path from a page to /docs/.
func rootOf(path string) string {
	switch depth := strings.Count(path, "/"); depth {
	case 0:
		return "docs/"
	case 1:
		return "./"
	default:
		return strings.Repeat("../", depth-1)
	}
}

// Current reports whether path is the page itself or the index above it.
func (p page) Current(path string) bool {
	return p.Path == path || p.Path == "" && path == "/" || path != "/" && strings.HasPrefix(p.Path, path+"/")
}

// Href returns the relative path from the page to a path below /docs.
func (p page) Href(path string) string { return p.Root + path[1:] }

// addReferences adds the reference pages. That of the API is the home page, with and without a trailing slash.
func (s *site) addReferences() error {
	api := page{Title: "API reference", Viewer: &viewer{"openapi.yaml", true}}
	receiver := page{Title: "Upload reference", Viewer: &viewer{"receiver.yaml", false}}
	for path, p := range map[string]page{"": api, "/": api, "/receiver": receiver} {
		if err := s.addPage(path, p); err != nil {
			return err
		}
	}
	return nil
}

// addTexts adds the guides, the contract and the glossary.
func (s *site) addTexts() error {
	for _, links := range [][]link{guideLinks, ruleLinks} {
		for _, l := range links {
			body, err := s.options.markdown(l.Path[1:] + ".md")
			if err != nil {
				return err
			}
			if err := s.addPage(l.Path, page{Title: l.Text, Body: body}); err != nil {
				return err
			}
		}
	}
	return nil
}

// errorPage is the data of error.html.
type errorPage struct {
	roomsensor.CodeInfo
	Status   string // number and name
	Example  string // body of a response
	Receiver bool   // whether only the receiver of uploads returns the code
}

// addErrors adds the index of error codes, and a page for each code (decision 35).
func (s *site) addErrors() error {
	intro, err := s.options.markdown("errors.md")
	if err != nil {
		return err
	}
	table, err := render("errors.html", roomsensor.Codes)
	if err != nil {
		return err
	}
	if err := s.addPage("/errors", page{Title: "Errors", Body: intro + table}); err != nil {
		return err
	}
	for _, info := range roomsensor.Codes {
		if err := s.addError(info); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) addError(info roomsensor.CodeInfo) error {
	example, err := exampleOf(info.Code, s.options.localize(defaultDocsURL))
	if err != nil {
		return err
	}
	body, err := render("error.html", errorPage{
		CodeInfo: info,
		Status:   fmt.Sprintf("%d %s", info.Status, http.StatusText(info.Status)),
		Example:  example,
		Receiver: strings.HasPrefix(string(info.Code), "ingest_"),
	})
	if err != nil {
		return err
	}
	return s.addPage("/errors/"+string(info.Code), page{Title: string(info.Code), Body: body})
}

// exampleRequestID is the request id in all examples.
const exampleRequestID = "req_ujzdegxdncf32epf3dhodzdoci"

// exampleOf returns an indented response with the code.
func exampleOf(code roomsensor.Code, docsURL string) (string, error) {
	body, err := httpedge.ErrorBody(code.New(), docsURL, exampleRequestID)
	if err != nil {
		return "", err
	}
	var example bytes.Buffer
	if err := json.Indent(&example, body, "", "  "); err != nil {
		return "", fmt.Errorf("indenting an example: %w", err)
	}
	return example.String() + "\n", nil
}

// render executes a template that produces the body of a page.
func render(name string, data any) (template.HTML, error) {
	var out strings.Builder
	if err := layouts.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // html/template escaped it.
}

// markdown is configured as GitHub renders the files, with tables, ids of headings and the anchors of the contract. Raw
// HTML is passed through, because adjust allows nothing but anchors.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

// markdown renders an embedded Markdown file.
func (o Options) markdown(name string) (template.HTML, error) {
	content, err := o.read(name)
	if err != nil {
		return "", err
	}
	source := []byte(content)
	document := markdown.Parser().Parse(text.NewReader(source))
	err = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		return ast.WalkContinue, adjust(node, source)
	})
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, document); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // The Markdown is embedded, and adjust checked its HTML.
}

// anchor matches the only raw HTML that the files contain: <a id="decision-37-c"></a>.
var anchor = regexp.MustCompile(`^(<a id="([a-z0-9_.-]+)">|</a>)$`)

// adjust makes a link to another file a link to its page: pages are placed like the files, without .md. It gives a
// heading that begins with an anchor that anchor's id, and returns an error for other raw HTML.
func adjust(node ast.Node, source []byte) error {
	switch n := node.(type) {
	case *ast.Link:
		path, fragment, hasFragment := strings.Cut(string(n.Destination), "#")
		path = strings.TrimSuffix(path, ".md")
		if hasFragment {
			path += "#" + fragment
		}
		n.Destination = []byte(path)
	case *ast.Heading:
		if first, ok := n.FirstChild().(*ast.RawHTML); ok {
			if match := anchor.FindSubmatch(first.Segments.Value(source)); match != nil {
				n.SetAttributeString("id", match[2])
				n.RemoveChild(n, first.NextSibling()) // </a>
				n.RemoveChild(n, first)
			}
		}
	case *ast.RawHTML:
		if tag := n.Segments.Value(source); !anchor.Match(tag) {
			return fmt.Errorf("raw HTML: %s", tag)
		}
	case *ast.HTMLBlock:
		return fmt.Errorf("raw HTML: %s", n.Lines().Value(source))
	}
	return nil
}
