package docs_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/test/conformance"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	t.Run("serves every kind of file", func(t *testing.T) {
		t.Parallel()
		for path, contentType := range map[string]string{
			"/docs":                       "text/html; charset=utf-8",
			"/docs/reference":             "text/html; charset=utf-8",
			"/docs/receiver":              "text/html; charset=utf-8",
			"/docs/guides":                "text/html; charset=utf-8",
			"/docs/operate":               "text/html; charset=utf-8",
			"/docs/operate/scaling":       "text/html; charset=utf-8",
			"/docs/troubleshooting":       "text/html; charset=utf-8",
			"/docs/changelog":             "text/html; charset=utf-8",
			"/docs/errors":                "text/html; charset=utf-8",
			"/docs/errors/cursor_invalid": "text/html; charset=utf-8",
			"/docs/guides/paging":         "text/html; charset=utf-8",
			"/docs/contract":              "text/html; charset=utf-8",
			"/docs/openapi.yaml":          "application/yaml",
			"/docs/openapi.json":          "application/json",
			"/docs/receiver.yaml":         "application/yaml",
			"/docs/receiver.json":         "application/json",
			"/docs/roomsensor.py":         "text/x-python; charset=utf-8",
			"/docs/assets/style.css":      "text/css; charset=utf-8",
			"/docs/assets/swagger-ui.js":  "text/javascript; charset=utf-8",
			"/docs/assets/reference.js":   "text/javascript; charset=utf-8",
			"/docs/assets/swagger-ui.css": "text/css; charset=utf-8",
			"/docs/assets/search.json":    "application/json",
			"/docs/assets/icon.svg":       "image/svg+xml",
			"/favicon.ico":                "image/x-icon",
			"/robots.txt":                 "text/plain; charset=utf-8",
		} {
			w := get(t, path)
			require.Equal(t, http.StatusOK, w.Code, path)
			require.Equal(t, contentType, w.Header().Get("Content-Type"), path)
			require.NotZero(t, w.Body.Len(), path)
		}
	})
	t.Run("serves nothing else", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{
			"/docs/nothing", "/docs/errors/nothing", "/docs/nothing/", "/docs/guides/nothing.md", "/docs/development",
			"/docs/assets/swagger-ui-bundle.js.gz", "/docs/web/layout.html", "/docs//", "/docs/../go.mod", "/",
		} {
			require.Equal(t, http.StatusNotFound, get(t, path).Code, path)
		}
	})
	t.Run("HEAD returns the headers of GET (decision 42 a)", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/docs", "/docs/openapi.yaml", "/docs/errors/overloaded"} {
			head := request(t, http.MethodHead, path)
			require.Equal(t, http.StatusOK, head.Code)
			require.Zero(t, head.Body.Len())
			require.Equal(t, get(t, path).Header(), head.Header())
		}
	})
	t.Run("revalidates", func(t *testing.T) {
		t.Parallel()
		first := get(t, "/docs/guides/csv")
		require.Equal(t, "no-cache", first.Header().Get("Cache-Control"))
		tag := first.Header().Get("Etag")
		require.Regexp(t, `^W/"[0-9a-f]{32}"$`, tag)
		for _, value := range []string{tag, strings.TrimPrefix(tag, "W/"), "*", `"x", ` + tag} {
			again := get(t, "/docs/guides/csv", "If-None-Match", value)
			require.Equal(t, http.StatusNotModified, again.Code, value)
			require.Zero(t, again.Body.Len())
		}
		require.Equal(t, http.StatusOK, get(t, "/docs/guides/csv", "If-None-Match", `"0"`).Code)
	})
	t.Run("compresses if the client accepts gzip", func(t *testing.T) {
		t.Parallel()
		const path = "/docs/assets/swagger-ui.js"
		plain := get(t, path)
		for accepted, zipped := range map[string]bool{
			"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip ;q=1": true,
			"": false, "br": false, "gzip;q=0": false, "gzip; q=0.00": false, "identity": false,
		} {
			w := get(t, path, "Accept-Encoding", accepted)
			require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
			require.Equal(t, plain.Header().Get("Etag"), w.Header().Get("Etag"), "the tag is weak")
			if !zipped {
				require.Empty(t, w.Header().Get("Content-Encoding"), accepted)
				require.Equal(t, plain.Body.Len(), w.Body.Len())
				continue
			}
			require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), accepted)
			require.Less(t, w.Body.Len(), plain.Body.Len()/2)
			r, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			body, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, plain.Body.Bytes(), body)
		}
	})
	t.Run("shows the addresses of the deployment", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/docs/openapi.yaml", "/docs/openapi.json", "/docs/guides/csv", "/docs/errors"} {
			require.NotContains(t, get(t, path).Body.String(), "127.0.0.1:8080", path)
		}
		require.Contains(t, get(t, "/docs/openapi.yaml").Body.String(), docsURL+"/guides/paging")
		require.Contains(t, get(t, "/docs/errors/overloaded").Body.String(), docsURL+"/errors/overloaded")
		require.Contains(t, get(t, "/docs/guides/csv").Body.String(), publicURL+"</span>/v1/readings.csv")
	})
}

// TestPythonClient checks that the pages serve the client with the address of the deployment.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A23.1")
	file, err := os.ReadFile("../clients/python/roomsensor.py")
	require.NoError(t, err)
	served := get(t, "/docs/roomsensor.py").Body.String()
	local := strings.NewReplacer("http://127.0.0.1:8080/docs", docsURL, "http://127.0.0.1:8080", publicURL)
	require.Equal(t, local.Replace(string(file)), served)
	imports := regexp.MustCompile(`(?m)^(?:import|from) (\w+)`).FindAllStringSubmatch(served, -1)
	for _, line := range imports {
		require.Contains(t, "__future__ collections contextlib csv datetime email gzip http itertools json logging os random "+
			"re ssl tempfile time typing urllib uuid zlib", line[1], "the standard library only")
	}
}

// TestNotFound checks that a browser gets a page for an unknown path, whose links work.
func TestNotFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/docs/x", "/docs/x/", "/docs/errors/x", "/docs/a/b/c", "/docs/1/2/3/4/5/6/7"} {
		w := get(t, path, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, w.Body.String(), path)
		head := request(t, http.MethodHead, path, "Accept", "text/html")
		require.Equal(t, http.StatusNotFound, head.Code)
		require.Zero(t, head.Body.Len())
		if strings.Count(path, "/") < 6 {
			for _, target := range targets(t, path, w.Body.String()) {
				if target.Fragment == "content" {
					continue
				}
				require.Equal(t, http.StatusOK, get(t, target.Path).Code, "%s links to %s", path, target)
			}
		}
	}
}

// TestRedirects checks that a page has one address.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for path, location := range map[string]string{
		"/docs/errors/": "../errors", "/docs/guides/csv/": "../csv", "/docs/": "../sensors", // The name in docsURL.
	} {
		w := get(t, path)
		require.Equal(t, http.StatusPermanentRedirect, w.Code, path)
		require.Equal(t, location, w.Header().Get("Location"), path)
	}
}

// TestPolicy checks that no page has a script or a style of its own, or a form that is sent.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for path, body := range crawl(t) {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		got := get(t, path).Header().Get("Content-Security-Policy")
		require.True(t, strings.HasPrefix(got, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "+
			"img-src 'self' data:; script-src 'self'; "), "%s: %s", path, got)
		require.NotRegexp(t, `<script>|<style|\sstyle=|\son[a-z]+=|<form[^>]* action`, body, path)
		viewer := strings.Contains(body, `id="viewer"`)
		require.Equal(t, viewer, strings.HasSuffix(got, "; style-src 'self' 'unsafe-inline'; connect-src 'self'"), path)
		require.Equal(t, !viewer, strings.HasSuffix(got, "; style-src 'self'; connect-src 'self'"), path)
	}
}

// TestAddressOfRequest checks that pages have the address under which a client opened them (decision 51 b).
func TestAddressOfRequest(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 51 b 1", "decision 51 b 2")
	h, err := docs.Handler(docs.Options{Public: func(r *http.Request) string { return "http://" + r.Host + "/a" }})
	require.NoError(t, err)
	open := func(host, path string, headers ...string) *httptest.ResponseRecorder {
		r := newRequest(http.MethodGet, path, headers...)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		return w
	}
	for _, path := range []string{"/docs/openapi.yaml", "/docs/openapi.json", "/docs/guides/csv", "/docs/errors", "/docs/errors/overloaded"} {
		here, there := open("one.example:81", path, "Accept-Encoding", "gzip"), open("two.example", path)
		require.NotContains(t, here.Body.String(), "127.0.0.1:8080", path)
		require.Contains(t, here.Body.String(), "http://one.example:81/a", path)
		require.Contains(t, there.Body.String(), "http://two.example/a", path)
		require.NotEqual(t, here.Header().Get("Etag"), there.Header().Get("Etag"), "a cache must not exchange them")
		require.Equal(t, here.Header().Get("Content-Security-Policy"), there.Header().Get("Content-Security-Policy"))
	}
	require.Contains(t, open("one.example", "/docs/openapi.yaml").Body.String(), "servers:\n  - url: ../v1\n")
	require.Equal(t, "gzip", open("one.example", "/docs/assets/swagger-ui.js", "Accept-Encoding", "gzip").Header().Get("Content-Encoding"))
	require.Contains(t, open("one.example", "/docs/guides/uploads").Body.String(), "http://127.0.0.1:8081", "the receiver has its own address")
}
