package docs_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/roomsensor"
)

var (
	reference = regexp.MustCompile(`(?:href|src|data-document)="([^"]*)"`)
	address   = regexp.MustCompile(`https?://[a-zA-Z0-9.:-]+`)
)

// crawl returns the bodies of all pages and files that links lead to from the home page, by path.
func crawl(t *testing.T) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	for queue := []string{"/docs"}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if _, ok := bodies[path]; ok {
			continue
		}
		w := get(t, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		bodies[path] = w.Body.String()
		for _, target := range targets(t, path, bodies[path]) {
			queue = append(queue, target.Path)
		}
	}
	return bodies
}

// targets resolves the links of a page as a browser does; other files have none.
func targets(t *testing.T, path, body string) []*url.URL {
	t.Helper()
	if !strings.HasPrefix(body, "<!doctype html>") {
		return nil
	}
	base, err := url.Parse("http://host" + path)
	require.NoError(t, err)
	var all []*url.URL
	for _, match := range reference.FindAllStringSubmatch(body, -1) {
		target, err := base.Parse(html.UnescapeString(match[1]))
		require.NoError(t, err, match[1])
		require.Equal(t, "host", target.Host, "%s leads outside: %s", path, match[1])
		all = append(all, target)
	}
	return all
}

func TestLinks(t *testing.T) {
	t.Parallel()
	bodies := crawl(t)
	t.Run("fragments exist", func(t *testing.T) {
		t.Parallel()
		for path, body := range bodies {
			for _, target := range targets(t, path, body) {
				if target.Fragment != "" {
					id := `id="` + target.Fragment + `"`
					require.Positive(t, strings.Count(bodies[target.Path], id), "%s links to %s", path, target)
				}
			}
		}
	})
	t.Run("every page is linked", func(t *testing.T) {
		t.Parallel()
		for _, info := range roomsensor.Codes {
			require.Contains(t, bodies, "/docs/errors/"+string(info.Code))
		}
		for _, name := range texts(t) {
			require.Contains(t, bodies, "/docs/"+strings.TrimSuffix(name, ".md"))
		}
	})
}

// TestHosts checks that no page names another host. The viewer's own files may: the policy of its page keeps them from
// loading anything from there.
func TestHosts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		publicURL: true, "https://help.example.org": true,
		"http://127.0.0.1:8081": true, // The default address of the receiver.
		"http://www.w3.org":     true, // The namespace of SVG.
	}
	for path, body := range crawl(t) {
		if strings.Contains(path, "/assets/swagger-ui.") {
			continue
		}
		for _, found := range address.FindAllString(body, -1) {
			require.True(t, known[found], "%s names %s", path, found)
		}
	}
}

// block is a fenced block of JSON; the word after json names its schema.
var block = regexp.MustCompile("(?s)```json ?(\\w*)\n(.*?)```")

func TestMarkdown(t *testing.T) {
	t.Parallel()
	t.Run("renders", func(t *testing.T) {
		t.Parallel()
		for _, name := range texts(t) {
			body := get(t, "/docs/"+strings.TrimSuffix(name, ".md")).Body.String()
			require.Equal(t, 1, strings.Count(body, "<h1"), name)
			require.NotContains(t, body, "```", name)
			require.NotContains(t, body, "|---", name)
			require.Equal(t, strings.HasPrefix(name, "guides/"), strings.Contains(body, `<code class="language-sh">`), name)
		}
	})
	t.Run("shows responses that the OpenAPI documents allow", func(t *testing.T) {
		t.Parallel()
		api, receiver := load(t, docs.OpenAPI()), load(t, docs.Receiver())
		shown := 0
		for _, name := range texts(t) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, match := range block.FindAllStringSubmatch(string(text), -1) {
				schema := api.Components.Schemas[match[1]]
				if schema == nil {
					schema = receiver.Components.Schemas[match[1]]
				}
				require.NotNil(t, schema, "%s: a block names the schema %q", name, match[1])
				require.NoError(t, check(t, schema, match[2]), name)
				shown++
			}
		}
		require.NotZero(t, shown)
	})
}

// TestErrorPages checks that documents and pages show the table of codes (decision 35).
func TestErrorPages(t *testing.T) {
	t.Parallel()
	api, receiver := load(t, docs.OpenAPI()), load(t, docs.Receiver())
	index := get(t, "/docs/errors").Body.String()
	for _, info := range roomsensor.Codes {
		document := api
		if strings.HasPrefix(string(info.Code), "ingest_") {
			document = receiver
		}
		require.Contains(t, document.Components.Schemas["ErrorCode"].Value.Enum, any(string(info.Code)))
		require.Contains(t, document.Components.Examples, string(info.Code))
		require.Contains(t, index, `<a href="errors/`+string(info.Code)+`">`)

		page := html.UnescapeString(get(t, "/docs/errors/"+string(info.Code)).Body.String())
		for _, text := range []string{strconv.Itoa(info.Status), info.Cause, info.Fix, info.Retry} {
			require.Contains(t, page, text)
		}
		_, rest, ok := strings.Cut(page, `<pre class="wrapped"><code>`)
		require.True(t, ok)
		example, _, ok := strings.Cut(rest, "</code>")
		require.True(t, ok)
		require.NoError(t, check(t, document.Components.Schemas["Error"], example), info.Code)
	}
}
