package docs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
)

const (
	publicURL = "https://api.example.org"
	docsURL   = "https://help.example.org/sensors"
)

// handler is shared by all tests, because it never changes.
var handler = sync.OnceValues(func() (http.Handler, error) {
	return docs.Handler(docs.Options{PublicURL: publicURL, DocsURL: docsURL})
})

func get(t *testing.T, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return request(t, http.MethodGet, path, headers...)
}

// request sends a request with headers given as names and values in turn.
func request(t *testing.T, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := handler()
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, path, headers...))
	return w
}

func newRequest(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// texts returns the names of the Markdown files that are pages, below docs/.
func texts(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "architecture.md", "errors.md", "contract.md", "glossary.md", "troubleshooting.md"}
	for _, dir := range []string{"guides", "operate", "operate/runbooks"} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			if !entry.IsDir() {
				names = append(names, dir+"/"+entry.Name())
			}
		}
	}
	return names
}

// pageOf returns the path of the page of a Markdown file.
func pageOf(name string) string {
	return strings.TrimSuffix("/docs/"+strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "README"), "/")
}

func load(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	return document
}

// operations calls visit for each operation of a document, with its method and path.
func operations(document *openapi3.T, visit func(name string, o *openapi3.Operation)) {
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			visit(method+" "+path, operation)
		}
	}
}

// check returns the error of a JSON text that does not match a schema.
func check(t *testing.T, schema *openapi3.SchemaRef, text string) error {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return schema.Value.VisitJSON(value)
}
