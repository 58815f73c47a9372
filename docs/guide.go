package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// guideLinks lists the guides in the order of the navigation.
var guideLinks = []link{
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

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

func (s *site) addGuides() error {
	for _, guide := range guideLinks {
		body, err := s.options.markdown(guide.Path[1:] + ".md")
		if err != nil {
			return err
		}
		if err := s.addPage(guide.Path, page{Title: guide.Text, Body: body}); err != nil {
			return err
		}
	}
	return nil
}

// markdown renders a file. A link to another file leads to its page: pages lie
// to one another as the files do, without the .md.
func (o Options) markdown(name string) (template.HTML, error) {
	source, err := o.read(name)
	if err != nil {
		return "", err
	}
	document := markdown.Parser().Parse(text.NewReader([]byte(source)))
	if err := ast.Walk(document, linkToPage); err != nil {
		return "", fmt.Errorf("walking %s: %w", name, err)
	}
	var html bytes.Buffer
	if err := markdown.Renderer().Render(&html, []byte(source), document); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return template.HTML(html.String()), nil //nolint:gosec // The Markdown is this package's own.
}

func linkToPage(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if link, ok := node.(*ast.Link); ok && entering {
		path, fragment, hasFragment := strings.Cut(string(link.Destination), "#")
		path = strings.TrimSuffix(path, ".md")
		if hasFragment {
			path += "#" + fragment
		}
		link.Destination = []byte(path)
	}
	return ast.WalkContinue, nil
}
