package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// heading is a heading of a page, for its contents and the search.
type heading struct {
	Level int // 2 or 3
	ID    string
	Text  string
	words strings.Builder // plain text up to the next heading
}

// markdownText is a rendered Markdown file.
type markdownText struct {
	title string
	body  template.HTML
	parts []*heading // the first one is the title
}

// newMarkdown returns a renderer that is configured as GitHub renders the files, with tables, ids of headings and the
// anchors of the contract. Raw HTML is passed through, because adjust allows nothing but anchors.
func newMarkdown(code codeRenderer) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(code, 100))),
	)
}

// renderMarkdown renders the Markdown of a file. Links to other files become links to their pages; up is the relative
// path from the page to the start page.
func (s *site) renderMarkdown(content, file, up string) (*markdownText, error) {
	source := []byte(content)
	ids := parser.NewContext(parser.WithIDs(&headingIDs{}))
	document := s.markdown.Parser().Parse(text.NewReader(source), parser.WithContext(ids))
	m := &mapper{source: source, file: file, up: up}
	if err := m.adjustAll(document); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	groupSamples(document, source)
	var out bytes.Buffer
	if err := s.markdown.Renderer().Render(&out, source, document); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", file, err)
	}
	if len(m.parts) == 0 || m.parts[0].Level != 1 {
		return nil, fmt.Errorf("rendering %s: it does not begin with a title", file)
	}
	//nolint:gosec // The Markdown is embedded, and adjust checked its HTML.
	return &markdownText{title: m.parts[0].Text, body: template.HTML(out.String()), parts: m.parts}, nil
}

// headingIDs makes the ids of headings as GitHub does, so that links work in both places.
type headingIDs struct{ seen []string }

var notInID = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (h *headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	unique := id
	for n := 1; slices.Contains(h.seen, unique); n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	h.seen = append(h.seen, unique)
	return []byte(unique)
}

// Put implements parser.IDs.
func (h *headingIDs) Put(value []byte) { h.seen = append(h.seen, string(value)) }

// mapper changes the tree of a Markdown file into that of a page.
type mapper struct {
	source   []byte
	file, up string
	parts    []*heading
}

// adjustAll calls adjust for every node. It lists the nodes first, because adjust moves some of them.
func (m *mapper) adjustAll(document ast.Node) error {
	var nodes []ast.Node
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			nodes = append(nodes, node)
		}
		return ast.WalkContinue, nil
	})
	for _, node := range nodes {
		if err := m.adjust(node); err != nil {
			return err
		}
	}
	return nil
}

// anchor matches the only raw HTML that the files contain: <a id="decision-37-c"></a>.
var anchor = regexp.MustCompile(`^(<a id="([a-z0-9_.-]+)">|</a>)$`)

func (m *mapper) adjust(node ast.Node) error {
	switch n := node.(type) {
	case *ast.Link:
		return m.adjustLink(n)
	case *ast.Heading:
		m.adjustHeading(n)
	case *table.Table:
		m.labelCells(n)
	case *ast.Text:
		m.addWords(n.Value(m.source))
	case *ast.String:
		m.addWords(n.Value)
	case *ast.RawHTML:
		if tag := n.Segments.Value(m.source); !anchor.Match(tag) {
			return fmt.Errorf("raw HTML: %s", tag)
		}
	case *ast.HTMLBlock:
		return fmt.Errorf("raw HTML: %s", n.Lines().Value(m.source))
	}
	return nil
}

// unserved are the Markdown files below docs/ that are not pages.
var unserved = []string{"conformance.md", "dependencies.md", "development.md"}

// adjustLink makes a link to a file a link to its page. A link to a file that is not served becomes its text.
func (m *mapper) adjustLink(link *ast.Link) error {
	page, fragment, to, err := resolveLink(m.file, string(link.Destination))
	switch to {
	case toPage:
		link.Destination = []byte(m.up + page + fragment)
	case toUnserved:
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	case toOther:
	}
	return err
}

// linkTarget is what a link leads to.
type linkTarget int

const (
	toOther    linkTarget = iota // the same page, or another host
	toPage                       // another page
	toUnserved                   // a file that is not served
)

// resolveLink returns where a link in a file leads to: the path of a page below /docs, and the fragment with its #.
func resolveLink(file, destination string) (page, fragment string, to linkTarget, err error) {
	target, fragment, found := strings.Cut(destination, "#")
	if target == "" || strings.Contains(target, "://") {
		return "", "", toOther, nil
	}
	if found {
		fragment = "#" + fragment
	}
	target = strings.TrimPrefix(path.Join(path.Dir(file), target), "../docs/")
	page, ok := pageOf(target)
	switch {
	case ok:
		return page, fragment, toPage, nil
	case strings.HasPrefix(target, "../") || slices.Contains(unserved, target):
		return "", "", toUnserved, nil
	}
	return "", "", toOther, fmt.Errorf("no page for the link %s", destination)
}

// adjustHeading gives a heading that begins with an anchor that anchor's id, and adds a link to itself.
func (m *mapper) adjustHeading(h *ast.Heading) {
	if first, ok := h.FirstChild().(*ast.RawHTML); ok {
		if match := anchor.FindSubmatch(first.Segments.Value(m.source)); match != nil {
			h.SetAttributeString("id", match[2])
			h.RemoveChild(h, first.NextSibling()) // </a>
			h.RemoveChild(h, first)
		}
	}
	value, _ := h.AttributeString("id")
	id, _ := value.([]byte) // The parser gives each heading one.
	part := &heading{Level: h.Level, ID: string(id), Text: plainText(h, m.source)}
	m.parts = append(m.parts, part)
	if h.Level == 1 {
		return
	}
	const permalink = ` <a class="permalink" href="#%s" aria-label="Link to this section">#</a>`
	link := ast.NewString(fmt.Appendf(nil, permalink, part.ID))
	link.SetCode(true) // It is HTML.
	h.AppendChild(h, link)
}

// labelCells gives each cell of a table the text of its column's header, which narrow screens show beside it.
func (m *mapper) labelCells(t *table.Table) {
	var labels [][]byte
	for cell := t.FirstChild().FirstChild(); cell != nil; cell = cell.NextSibling() {
		labels = append(labels, []byte(plainText(cell, m.source)))
	}
	for row := t.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
		column := 0
		for cell := row.FirstChild(); cell != nil && column < len(labels); cell = cell.NextSibling() {
			cell.SetAttributeString("data-label", labels[column])
			column++
		}
	}
}

// addWords adds text to the part of the page that is searched under the last heading.
func (m *mapper) addWords(words []byte) {
	if len(m.parts) == 0 {
		return
	}
	last := m.parts[len(m.parts)-1]
	_, _ = last.words.Write(words) // Writing to memory cannot fail.
	_ = last.words.WriteByte(' ')
}

// plainText returns the text below a node.
func plainText(node ast.Node, source []byte) string {
	var all strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			_, _ = all.Write(t.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return all.String()
}
