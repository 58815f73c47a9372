package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefix is the path that the pages are mounted under.
const prefix = "/docs"

// site holds every file of the pages, by the path it is served under.
type site struct {
	options Options
	files   map[string]*file
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	f.serve(w, r)
}

// addPage renders a page into the layout. Links are relative, so that the pages
// work under whatever address a proxy gives them.
func (s *site) addPage(path string, p page) error {
	p.Path, p.Root = path, rootOf(path)
	var html bytes.Buffer
	if err := layouts.ExecuteTemplate(&html, "layout.html", p); err != nil {
		return fmt.Errorf("rendering %s: %w", path, err)
	}
	f := newFile("text/html; charset=utf-8", html.Bytes())
	f.policy = policy(p.Viewer, s.options.PublicURL)
	s.files[prefix+path] = f
	return nil
}

// rootOf is the way from a page to the directory /docs/.
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

// policy is the Content-Security-Policy of a page. The viewer runs its own
// script, sets styles and asks the API; every other page does none of that.
func policy(v *viewer, publicURL string) string {
	const locked = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src 'self' data:; "
	if v == nil {
		return locked + "style-src 'self'"
	}
	return locked + "style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self' " + origin(publicURL)
}

// origin is the scheme and host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// addDocuments serves the OpenAPI documents as YAML and as JSON.
func (s *site) addDocuments() error {
	for _, name := range []string{"openapi", "receiver"} {
		text, err := s.options.read(name + ".yaml")
		if err != nil {
			return err
		}
		asJSON, err := toJSON(text)
		if err != nil {
			return fmt.Errorf("reading %s.yaml: %w", name, err)
		}
		s.files[prefix+"/"+name+".yaml"] = newFile("application/yaml", []byte(text))
		s.files[prefix+"/"+name+".json"] = newFile("application/json", asJSON)
	}
	return nil
}

func toJSON(text string) ([]byte, error) {
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", err)
	}
	asJSON, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return append(asJSON, '\n'), nil
}
