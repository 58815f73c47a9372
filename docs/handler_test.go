package docs_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/docs"
)

const (
	publicURL = "https://api.example.org"
	docsURL   = "https://help.example.org/sensors"
)

// handler is the one that the tests share: it never changes.
var handler = sync.OnceValues(func() (http.Handler, error) {
	return docs.Handler(docs.Options{PublicURL: publicURL, DocsURL: docsURL})
})

func sharedHandler(t *testing.T) http.Handler {
	t.Helper()
	h, err := handler()
	require.NoError(t, err)
	return h
}

func get(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerServesEveryKindOfFile(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for path, contentType := range map[string]string{
		"/docs":                        "text/html; charset=utf-8",
		"/docs/":                       "text/html; charset=utf-8",
		"/docs/receiver":               "text/html; charset=utf-8",
		"/docs/errors":                 "text/html; charset=utf-8",
		"/docs/errors/cursor_invalid":  "text/html; charset=utf-8",
		"/docs/guides/paging":          "text/html; charset=utf-8",
		"/docs/openapi.yaml":           "application/yaml",
		"/docs/openapi.json":           "application/json",
		"/docs/receiver.yaml":          "application/yaml",
		"/docs/receiver.json":          "application/json",
		"/docs/assets/style.css":       "text/css; charset=utf-8",
		"/docs/assets/swagger-ui.js":   "text/javascript; charset=utf-8",
		"/docs/assets/reference.js":    "text/javascript; charset=utf-8",
		"/docs/assets/swagger-ui.css":  "text/css; charset=utf-8",
		"/docs/assets/icon.svg":        "image/svg+xml",
		"/docs/errors/api_key_missing": "text/html; charset=utf-8",
	} {
		w := get(h, http.MethodGet, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, contentType, w.Header().Get("Content-Type"), path)
		require.NotZero(t, w.Body.Len(), path)
	}
}

// Decision 42: HEAD works wherever GET does, docs included.
func TestHandlerAnswersHeadWithTheHeadersOfGet(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for _, path := range []string{"/docs", "/docs/openapi.yaml", "/docs/errors/overloaded"} {
		head := get(h, http.MethodHead, path)
		require.Equal(t, http.StatusOK, head.Code)
		require.Zero(t, head.Body.Len())
		require.Equal(t, get(h, http.MethodGet, path).Header(), head.Header())
	}
}

func TestHandlerHasNothingElse(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for _, path := range []string{
		"/docs/nothing", "/docs/errors/nothing", "/docs/guides", "/docs/guides/paging.md", "/docs/errors/",
		"/docs/assets/swagger-ui-bundle.js.gz", "/docs/web/layout.html", "/docs//", "/docs/../go.mod", "/",
	} {
		require.Equal(t, http.StatusNotFound, get(h, http.MethodGet, path).Code, path)
	}
}

func TestHandlerRevalidates(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	first := get(h, http.MethodGet, "/docs/guides/csv")
	require.Equal(t, "no-cache", first.Header().Get("Cache-Control"))
	tag := first.Header().Get("Etag")
	require.Regexp(t, `^W/"[0-9a-f]{32}"$`, tag)

	again := get(h, http.MethodGet, "/docs/guides/csv", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Zero(t, again.Body.Len())

	other := get(h, http.MethodGet, "/docs/guides/csv", "If-None-Match", `"0"`)
	require.Equal(t, http.StatusOK, other.Code)
}

func TestHandlerCompressesWhereTheClientTakesIt(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	const path = "/docs/assets/swagger-ui.js"
	plain := get(h, http.MethodGet, path)
	for accepted, zipped := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip ;q=1": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.00": false, "identity": false,
	} {
		w := get(h, http.MethodGet, path, "Accept-Encoding", accepted)
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		if !zipped {
			require.Empty(t, w.Header().Get("Content-Encoding"), accepted)
			require.Equal(t, plain.Body.Len(), w.Body.Len())
			continue
		}
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), accepted)
		require.Equal(t, plain.Header().Get("Etag"), w.Header().Get("Etag"), "it is weak")
		require.Less(t, w.Body.Len(), plain.Body.Len()/2)
		r, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, plain.Body.Bytes(), body)
	}
}

// A page runs no script but the viewer's, and loads nothing from elsewhere.
func TestHandlerLocksPages(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	guide := get(h, http.MethodGet, "/docs/guides/csv")
	require.Contains(t, guide.Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, guide.Header().Get("Content-Security-Policy"), "script-src")
	require.NotContains(t, guide.Body.String(), "<script")

	reference := get(h, http.MethodGet, "/docs").Header().Get("Content-Security-Policy")
	require.Contains(t, reference, "script-src 'self';")
	require.Contains(t, reference, "connect-src 'self' "+publicURL)
}

func TestHandlerNamesTheAddressesOfTheDeployment(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for _, path := range []string{"/docs/openapi.yaml", "/docs/openapi.json", "/docs/guides/csv", "/docs/errors"} {
		body := get(h, http.MethodGet, path).Body.String()
		require.NotContains(t, body, "127.0.0.1:8080", path)
	}
	require.Contains(t, get(h, http.MethodGet, "/docs/openapi.yaml").Body.String(), "- url: "+publicURL+"/v1\n")
	require.Contains(t, get(h, http.MethodGet, "/docs/errors/overloaded").Body.String(), docsURL+"/errors/overloaded")
	require.Contains(t, get(h, http.MethodGet, "/docs/guides/csv").Body.String(), publicURL+"/v1/readings.csv")
}
