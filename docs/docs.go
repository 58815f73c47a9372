package docs

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"go.yaml.in/yaml/v3"

	"roomsensor"
)

//go:generate go run ./gen
//go:generate go run ./clientgen

//go:embed README.md api-changes.md architecture.md openapi.yaml receiver.yaml contract.md glossary.md errors.md troubleshooting.md guides operate web
var files embed.FS

// prefix is the path under which Handler serves the pages.
const prefix = "/docs"

// Addresses that the embedded files contain: the defaults, so that the examples in the repository work unchanged.
// Options.localize and file.at replace them.
const (
	defaultPublicURL = "http://127.0.0.1:8080"
	defaultDocsURL   = defaultPublicURL + prefix
)

// defaultReceiverURL is the address of the receiver in the samples. Its readers replace it.
const defaultReceiverURL = "http://127.0.0.1:8081"

// Options are the addresses of a deployment that the pages show.
type Options struct {
	PublicURL string // base URL of the API for clients, without /v1
	DocsURL   string // base URL of these pages for clients
	// Public returns the base URL of the API as the client of a request reaches it. If it is set, PublicURL is not used,
	// and DocsURL may be empty, which means /docs below that URL.
	Public func(*http.Request) string
}

// belowAPI reports whether the pages are at the address of the API, so that the address of a page contains that of the
// API.
func (o Options) belowAPI() bool {
	return strings.TrimSuffix(o.DocsURL, "/") == strings.TrimSuffix(o.PublicURL, "/")+prefix
}

// name returns the last segment of the address of the pages.
func (o Options) name() string {
	if u, err := url.Parse(o.DocsURL); err == nil && strings.Trim(u.Path, "/") != "" {
		return path.Base(u.Path)
	}
	return prefix[1:]
}

// localize replaces the default addresses in text by those of the deployment.
func (o Options) localize(text string) string {
	return strings.NewReplacer(
		defaultDocsURL, strings.TrimSuffix(o.DocsURL, "/"),
		defaultPublicURL, strings.TrimSuffix(o.PublicURL, "/"),
	).Replace(text)
}

// read returns an embedded file with the addresses of the deployment. The changelog and the guides for operators name
// the default addresses, and keep them.
func (o Options) read(name string) (string, error) {
	if name == changelogFile {
		return roomsensor.Changelog, nil
	}
	text, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("reading an embedded file: %w", err)
	}
	if path.Dir(name) == "operate" {
		return string(text), nil
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

// Handler returns a handler that serves /docs and everything below it, /favicon.ico and /robots.txt. For other paths it
// returns 404, as a page if the client accepts HTML. The router in front of it must pass GET and HEAD only. Handler
// renders all pages once; it fails only if an embedded file is broken.
func Handler(o Options) (http.Handler, error) {
	if o.Public != nil {
		o.PublicURL, o.DocsURL = defaultPublicURL, cmp.Or(o.DocsURL, defaultDocsURL)
	}
	code := codeRenderer{api: strings.TrimSuffix(o.PublicURL, "/")}
	s := &site{options: o, files: map[string]*file{}, markdown: newMarkdown(code)}
	for _, add := range []func() error{
		s.addNotFound, s.addAssets, s.addDocuments, s.addReferences, s.addTexts, s.addErrors, s.addSearch, s.addIndexes,
	} {
		if err := add(); err != nil {
			return nil, fmt.Errorf("building the docs pages: %w", err)
		}
	}
	return s, nil
}

// site holds all files of the pages by the path under which they are served.
type site struct {
	options  Options
	markdown goldmark.Markdown
	files    map[string]*file
	notFound []*file // by the number of slashes below /docs
	search   searchIndex
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f, ok := s.files[r.URL.Path]; ok {
		if s.options.Public != nil && !isFixed(r.URL.Path) {
			f = f.at(s.options.Public(r))
		}
		f.serve(w, r)
		return
	}
	page, slashed := strings.CutSuffix(r.URL.Path, "/")
	if _, ok := s.files[page]; ok && slashed {
		name := path.Base(page)
		if page == prefix {
			name = s.options.name()
		}
		w.Header().Set("Location", "../"+name) // Relative, because a proxy may have removed a prefix of the path.
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	if !strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html") {
		http.NotFound(w, r)
		return
	}
	depth := strings.Count(strings.TrimPrefix(r.URL.Path, prefix), "/")
	s.notFound[min(depth, maxDepth-1)].serveStatus(w, r, http.StatusNotFound)
}

// isFixed reports whether a page keeps the default addresses; see Options.read.
func isFixed(path string) bool {
	page := strings.TrimSuffix(path, ".md")
	return strings.HasPrefix(page, prefix+"/operate") || page == prefix+"/changelog"
}

// addDocuments adds the OpenAPI documents as YAML and as JSON, and the one that the page of the API shows.
func (s *site) addDocuments() error {
	for _, name := range []string{"openapi", "receiver"} {
		text, err := s.options.read(name + ".yaml")
		if err != nil {
			return err
		}
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return fmt.Errorf("decoding %s.yaml: %w", name, err)
		}
		s.files[prefix+"/"+name+".yaml"] = newFile("application/yaml", []byte(text))
		if err := s.addJSON("/"+name+".json", document); err != nil {
			return err
		}
		if name == "receiver" {
			s.addOperations("/receiver", "Upload reference", name, document)
			continue
		}
		shorten(document)
		s.addOperations("/reference", "API reference", name, document)
		if err := s.addJSON("/reference.json", document); err != nil {
			return err
		}
	}
	return nil
}

// addJSON adds a file with a value as indented JSON.
func (s *site) addJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	s.files[prefix+path] = newFile("application/json", append(text, '\n'))
	return nil
}

// shorten prepares a document for the viewer. The viewer would send the example of every parameter, so that only
// required parameters keep theirs, and one that is an object begins as an empty object, beside how to fill it.
func shorten(document map[string]any) {
	for _, p := range child(document, "components", "parameters") {
		parameter, _ := p.(map[string]any)
		if parameter["required"] != true {
			delete(parameter, "example")
		}
		if schema := child(parameter, "schema"); schema["type"] == "object" {
			schema["example"] = map[string]any{}
			parameter["description"] = fmt.Sprintf("%v\nUnder \"Try it out\", enter an object: "+
				"`{\"metadata.site\": \"north\", \"metadata.floor\": \"2\"}`.", parameter["description"])
		}
	}
}

// child returns the object at a path of a document, or nil.
func child(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// policy returns the Content-Security-Policy of a page. The scripts of all pages are files of the service, and load
// nothing but the search index. Only the viewer sets inline styles and calls the API, which has the origin of the page
// (decision 51 b).
func policy(v *viewer) string {
	const locked = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src 'self' data:; script-src 'self'; "
	if v == nil {
		return locked + "style-src 'self'; connect-src 'self'"
	}
	return locked + "style-src 'self' 'unsafe-inline'; connect-src 'self'"
}
