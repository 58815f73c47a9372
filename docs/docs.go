package docs

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:generate go run ./gen

//go:embed openapi.yaml receiver.yaml contract.md glossary.md errors.md guides web
var files embed.FS

// prefix is the path under which Handler serves the pages.
const prefix = "/docs"

// Addresses that the embedded files contain: the defaults, so that the examples in the repository work unchanged.
// Options.localize replaces them.
const (
	defaultPublicURL = "http://127.0.0.1:8080"
	defaultDocsURL   = defaultPublicURL + prefix
)

// Options are the addresses of a deployment that the pages show.
type Options struct {
	PublicURL string // base URL of the API for clients, without /v1
	DocsURL   string // base URL of these pages for clients
}

// localize replaces the default addresses in text by those of the deployment.
func (o Options) localize(text string) string {
	return strings.NewReplacer(
		defaultDocsURL, strings.TrimSuffix(o.DocsURL, "/"),
		defaultPublicURL, strings.TrimSuffix(o.PublicURL, "/"),
	).Replace(text)
}

// read returns an embedded file with the addresses of the deployment.
func (o Options) read(name string) (string, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("reading an embedded file: %w", err)
	}
	return o.localize(string(text)), nil
}

// OpenAPI returns the OpenAPI document of the API as it is in the repository, with the default addresses.
func OpenAPI() []byte { return mustRead("openapi.yaml") }

// Receiver returns the OpenAPI document of the receiver of uploads, with the default addresses.
func Receiver() []byte { return mustRead("receiver.yaml") }

// Contract returns contract.md: the specification and all decisions, with an anchor for every rule.
func Contract() []byte { return mustRead("contract.md") }

func mustRead(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // The name is embedded above.
	}
	return text
}

// Handler returns a handler that serves /docs and everything below it, and a plain 404 for other paths. The router in
// front of it must pass GET and HEAD only. Handler renders all pages once; it fails only if an embedded file is broken.
func Handler(o Options) (http.Handler, error) {
	s := &site{options: o, files: map[string]*file{}}
	for _, add := range []func() error{s.addAssets, s.addDocuments, s.addReferences, s.addTexts, s.addErrors} {
		if err := add(); err != nil {
			return nil, fmt.Errorf("building the docs pages: %w", err)
		}
	}
	return s, nil
}

// site holds all files of the pages by the path under which they are served.
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

// addDocuments adds the OpenAPI documents, as YAML and as JSON.
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

// policy returns the Content-Security-Policy of a page. Only the viewer runs a script, sets inline styles and calls the
// API.
func policy(v *viewer, publicURL string) string {
	const locked = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src 'self' data:; "
	if v == nil {
		return locked + "style-src 'self'"
	}
	return locked + "style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self' " + origin(publicURL)
}

// origin returns the scheme and host of an address, or "" if it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
