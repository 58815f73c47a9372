package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// page is the data of layout.html.
type page struct {
	Title          string
	About          string // one sentence
	Path           string // below /docs
	Up             string // relative path to /docs
	API            string // base URL of the API, if these pages are not below it
	Body           template.HTML
	Contents       []*heading
	Viewer         *viewer
	Previous, Next *link
	Markdown       string // path of its Markdown below /docs; empty if it has none
}

// viewer is the reference page of one OpenAPI document.
type viewer struct {
	Document string // file name of the document
	Shown    string // file name of what the page shows of it
	Try      bool   // whether the page can send requests
}

var layouts = template.Must(template.New("").Funcs(template.FuncMap{
	"sections": func() []section { return sections },
	"guide":    func(name string) link { return pageLink("/guides/" + name) },
}).ParseFS(files, "web/*.html"))

// addPage renders a page into the layout. Its links are relative, so that the pages work under any address that a proxy
// gives them.
func (s *site) addPage(path string, p page) error {
	p.Path, p.Up = path, s.up(path)
	p.Previous, p.Next = neighbors(path)
	if s.files[prefix+markdownPath(path)] != nil {
		p.Markdown = markdownPath(path)
	}
	if !s.options.belowAPI() {
		p.API = s.options.PublicURL
	}
	body, err := render("layout.html", p)
	if err != nil {
		return err
	}
	f := newFile(htmlType, []byte(body))
	f.policy = policy(p.Viewer)
	s.files[prefix+path] = f
	return nil
}

// up returns the relative path from a page to the start page.
func (s *site) up(path string) string {
	return strings.Repeat("../", strings.Count(path, "/")) + s.options.name()
}

// Current reports whether path is the page itself or the index above it.
func (p page) Current(path string) bool {
	return p.Path == path || path == "/errors" && strings.HasPrefix(p.Path, "/errors/")
}

// ForOperators reports whether the page shows the menu of those who run the service.
func (p page) ForOperators() bool { return forOperators(p.Path) }

// Href returns the relative path from the page to a path below /docs.
func (p page) Href(path string) string { return p.Up + path }

// HasSamples reports whether the page has samples that need a key.
func (p page) HasSamples() bool {
	body := string(p.Body)
	return strings.Contains(body, ` data-field="key"`) || strings.Contains(body, ` data-field="ingest"`)
}

// addReferences adds the reference pages.
func (s *site) addReferences() error {
	for path, v := range map[string]*viewer{
		"/reference": {"openapi.yaml", "reference.json", true},
		"/receiver":  {"receiver.yaml", "receiver.json", false},
	} {
		l := pageLink(path)
		if err := s.addPage(path, page{Title: l.Text, About: l.About, Viewer: v}); err != nil {
			return err
		}
	}
	return nil
}

// addTexts adds the pages of the navigation that are Markdown files, and the index of the guides.
func (s *site) addTexts() error {
	for _, l := range pages {
		if l.File == "" || l.File == errorsFile {
			continue
		}
		m, err := s.text(l)
		if err != nil {
			return err
		}
		if err := s.addPage(l.Path, m.page(l)); err != nil {
			return err
		}
	}
	return s.addGuides()
}

// maxDepth is the number of depths below /docs for which there is a page that reports an unknown path.
const maxDepth = 5

// addNotFound adds the pages for paths that do not exist: one for each depth, because links are relative.
func (s *site) addNotFound() error {
	body, err := render("notfound.html", nil)
	if err != nil {
		return err
	}
	for depth := range maxDepth { // Pages are added later: one of these is at the path of the start page.
		path := strings.Repeat("/", depth)
		if err := s.addPage(path, page{Title: "Page not found", About: "This page does not exist.", Body: body}); err != nil {
			return err
		}
		s.notFound = append(s.notFound, s.files[prefix+path])
		delete(s.files, prefix+path)
	}
	return nil
}

// addGuides adds the index of the guides.
func (s *site) addGuides() error {
	i := slices.IndexFunc(sections, func(group section) bool { return group.Title == guidesTitle })
	body, err := render("guides.html", sections[i])
	if err != nil {
		return err
	}
	s.addMarkdown("/guides", "# "+guidesTitle+"\n\n"+s.list(sections[i].Pages, s.up("/guides")))
	return s.addPage("/guides", page{Title: guidesTitle, About: "All guides for users of the API.", Body: body})
}

// text renders the Markdown file of a page, and makes it searchable.
func (s *site) text(l link) (*markdownText, error) {
	content, err := s.options.read(l.File)
	if err != nil {
		return nil, err
	}
	m, err := s.renderMarkdown(content, l.File, s.up(l.Path))
	if err != nil {
		return nil, err
	}
	s.search.addText(l.Path, m)
	return m, s.linkMarkdown(l, content)
}

// page returns the page of a text.
func (m *markdownText) page(l link) page {
	p := page{Title: m.title, About: l.About, Body: m.body}
	for _, part := range m.parts {
		if part.Level == 2 || part.Level == 3 {
			p.Contents = append(p.Contents, part)
		}
	}
	return p
}

// errorPage is the data of error.html.
type errorPage struct {
	roomsensor.CodeInfo
	Status   string // number and name
	Example  string // body of a response
	Receiver bool   // whether only the receiver of uploads returns the code
}

// errorsFile is the text above the index of error codes.
const errorsFile = "errors.md"

// addErrors adds the index of error codes, and a page for each code (decision 35).
func (s *site) addErrors() error {
	l := pageLink("/errors")
	m, err := s.text(l)
	if err != nil {
		return err
	}
	table, err := render("errors.html", roomsensor.Codes)
	if err != nil {
		return err
	}
	s.addErrorMarkdown()
	p := m.page(l)
	p.Body += table
	p.Contents = append(p.Contents, &heading{Level: 2, ID: "codes", Text: "Codes"})
	if err := s.addPage(l.Path, p); err != nil {
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
	status := fmt.Sprintf("%d %s", info.Status, http.StatusText(info.Status))
	body, err := render("error.html", errorPage{
		CodeInfo: info,
		Status:   status,
		Example:  example,
		Receiver: strings.HasPrefix(string(info.Code), "ingest_"),
	})
	if err != nil {
		return err
	}
	path := "/errors/" + string(info.Code)
	s.addMarkdown(path, fmt.Sprintf("# `%s`\n\n%s\n\n## Cause\n\n%s\n\n## Example\n\n```json\n%s```\n\n"+
		"## What to do\n\n%s\n\n## Retry\n\n%s\n", info.Code, status, info.Cause, example, info.Fix, info.Retry))
	s.search.add(path, string(info.Code), status, strings.Join([]string{info.Message, info.Cause, info.Fix}, " "))
	return s.addPage(path, page{Title: string(info.Code), About: info.Cause, Body: body})
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
