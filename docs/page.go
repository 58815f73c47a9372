package docs

import (
	"fmt"
	"html/template"
	"strings"
)

// page is what the layout shows.
type page struct {
	Title  string
	Path   string // below /docs
	Root   string // the way to /docs/
	Body   template.HTML
	Viewer *viewer
}

// viewer is the reference of one OpenAPI document.
type viewer struct {
	Document string // its file
	Try      bool   // whether requests can be sent from the page
}

// link is an entry of the navigation; Path is below /docs.
type link struct{ Path, Text string }

// entry is a link as one page shows it.
type entry struct {
	Page       page
	Path, Text string
}

var documentLinks = []link{
	{"/openapi.yaml", "openapi.yaml"},
	{"/openapi.json", "openapi.json"},
	{"/receiver.yaml", "receiver.yaml"},
	{"/receiver.json", "receiver.json"},
}

var layouts = template.Must(template.New("").Funcs(template.FuncMap{
	"guides":    func() []link { return guideLinks },
	"documents": func() []link { return documentLinks },
	"entry":     func(p page, path, text string) entry { return entry{p, path, text} },
}).ParseFS(files, "web/*.html"))

// addReferences serves the reference pages. The first of them is the home page,
// under both of its paths.
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

// Current reports whether a link leads to the page that shows it, or to the
// index above it.
func (p page) Current(path string) bool {
	return p.Path == path || p.Path == "" && path == "/" || path != "/" && strings.HasPrefix(p.Path, path+"/")
}

// Href is the way from the page to a path below /docs.
func (p page) Href(path string) string {
	return p.Root + path[1:]
}

// render executes one of the templates that fill a page's body.
func render(name string, data any) (template.HTML, error) {
	var html htmlBuffer
	if err := layouts.ExecuteTemplate(&html, name, data); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return template.HTML(html), nil //nolint:gosec // html/template escaped it.
}

type htmlBuffer []byte

func (b *htmlBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
