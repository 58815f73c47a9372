package docs_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var (
	reference = regexp.MustCompile(`(?:href|src|data-document)="([^"]*)"`)
	address   = regexp.MustCompile(`https?://[a-zA-Z0-9.:-]+`)
)

// walk visits every page and file that links lead to from the home page, and
// hands each with its body to visit.
func walk(t *testing.T, visit func(path, body string)) map[string]string {
	t.Helper()
	h := sharedHandler(t)
	bodies := map[string]string{}
	for queue := []string{"/docs"}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if _, ok := bodies[path]; ok {
			continue
		}
		w := get(h, http.MethodGet, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		bodies[path] = w.Body.String()
		visit(path, bodies[path])
		if !isPage(bodies[path]) {
			continue
		}
		for _, target := range targets(t, path, bodies[path]) {
			queue = append(queue, target.Path)
		}
	}
	return bodies
}

func isPage(body string) bool { return strings.HasPrefix(body, "<!doctype html>") }

// targets resolves the links of a page as a browser does.
func targets(t *testing.T, path, body string) []*url.URL {
	t.Helper()
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

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	bodies := walk(t, func(string, string) {})
	for path, body := range bodies {
		if !isPage(body) {
			continue
		}
		for _, target := range targets(t, path, body) {
			if target.Fragment != "" {
				require.Contains(t, bodies[target.Path], `id="`+target.Fragment+`"`, "%s links to %s", path, target)
			}
		}
	}
}

func TestEveryPageIsLinked(t *testing.T) {
	t.Parallel()
	bodies := walk(t, func(string, string) {})
	for _, info := range roomsensor.Codes {
		require.Contains(t, bodies, "/docs/errors/"+string(info.Code))
	}
	for _, name := range guideFiles(t) {
		require.Contains(t, bodies, "/docs/guides/"+strings.TrimSuffix(name, ".md"))
	}
}

// The viewer's own files are not looked at: the policy of the page keeps them
// from loading anything from elsewhere.
func TestNoPageNamesAnotherHost(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		publicURL: true, "https://help.example.org": true,
		"http://127.0.0.1:8081": true, // The receiver's default address.
		"http://www.w3.org":     true, // The namespace of SVG.
	}
	walk(t, func(path, body string) {
		if strings.Contains(path, "/assets/swagger-ui.") {
			return
		}
		for _, found := range address.FindAllString(body, -1) {
			require.True(t, known[found], "%s names %s", path, found)
		}
	})
}
