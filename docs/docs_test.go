package docs_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	t.Run("serves every kind of file", func(t *testing.T) {
		t.Parallel()
		for path, contentType := range map[string]string{
			"/docs":                       "text/html; charset=utf-8",
			"/docs/":                      "text/html; charset=utf-8",
			"/docs/receiver":              "text/html; charset=utf-8",
			"/docs/errors":                "text/html; charset=utf-8",
			"/docs/errors/cursor_invalid": "text/html; charset=utf-8",
			"/docs/guides/paging":         "text/html; charset=utf-8",
			"/docs/contract":              "text/html; charset=utf-8",
			"/docs/openapi.yaml":          "application/yaml",
			"/docs/openapi.json":          "application/json",
			"/docs/receiver.yaml":         "application/yaml",
			"/docs/receiver.json":         "application/json",
			"/docs/assets/style.css":      "text/css; charset=utf-8",
			"/docs/assets/swagger-ui.js":  "text/javascript; charset=utf-8",
			"/docs/assets/reference.js":   "text/javascript; charset=utf-8",
			"/docs/assets/swagger-ui.css": "text/css; charset=utf-8",
			"/docs/assets/icon.svg":       "image/svg+xml",
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
			"/docs/nothing", "/docs/errors/nothing", "/docs/guides", "/docs/guides/paging.md", "/docs/errors/",
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
	t.Run("sets a policy: only the viewer runs a script", func(t *testing.T) {
		t.Parallel()
		guide := get(t, "/docs/guides/csv")
		require.Contains(t, guide.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, guide.Header().Get("Content-Security-Policy"), "script-src")
		require.NotContains(t, guide.Body.String(), "<script")
		reference := get(t, "/docs").Header().Get("Content-Security-Policy")
		require.Contains(t, reference, "script-src 'self';")
		require.Contains(t, reference, "connect-src 'self' "+publicURL)
	})
	t.Run("shows the addresses of the deployment", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/docs/openapi.yaml", "/docs/openapi.json", "/docs/guides/csv", "/docs/errors"} {
			require.NotContains(t, get(t, path).Body.String(), "127.0.0.1:8080", path)
		}
		require.Contains(t, get(t, "/docs/openapi.yaml").Body.String(), "- url: "+publicURL+"/v1\n")
		require.Contains(t, get(t, "/docs/errors/overloaded").Body.String(), docsURL+"/errors/overloaded")
		require.Contains(t, get(t, "/docs/guides/csv").Body.String(), publicURL+"/v1/readings.csv")
	})
}
