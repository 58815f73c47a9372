package docs_test

import (
	"encoding/json"
	"html"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
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

// targets resolves the links of a page, or of its Markdown, as a browser does; other files have none.
func targets(t *testing.T, path, body string) []*url.URL {
	t.Helper()
	reference := reference
	switch {
	case strings.HasSuffix(path, ".md"):
		body, reference = fenced.ReplaceAllString(body, ""), markdownLink
	case !strings.HasPrefix(body, "<!doctype html>"):
		return nil
	}
	base, err := url.Parse("http://host" + path)
	require.NoError(t, err)
	var all []*url.URL
	for _, match := range reference.FindAllStringSubmatch(body, -1) {
		target, err := base.Parse(html.UnescapeString(match[1]))
		require.NoError(t, err, match[1])
		if target.Host != "host" {
			require.True(t, mayNameHosts(path), "%s leads outside: %s", path, match[1])
			continue
		}
		if rest, ok := strings.CutPrefix(target.Path, "/sensors"); ok { // The name of these pages in docsURL.
			target.Path = "/docs" + rest
		}
		all = append(all, target)
	}
	return all
}

// forOperators reports whether a page is for those who run the service.
func forOperators(path string) bool { return strings.HasPrefix(path, "/docs/operate") }

// mayNameHosts reports whether a page may name other hosts, such as the documentation of KEDA.
func mayNameHosts(path string) bool {
	return forOperators(path) || strings.TrimSuffix(path, ".md") == "/docs/changelog"
}

func TestLinks(t *testing.T) {
	t.Parallel()
	bodies := crawl(t)
	t.Run("fragments exist", func(t *testing.T) {
		t.Parallel()
		for path, body := range bodies {
			for _, target := range targets(t, path, body) {
				if page, ok := strings.CutSuffix(target.Path, ".md"); ok {
					target.Path = strings.TrimSuffix(page, "/quickstart") // The fragments of Markdown are those of its page.
				}
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
			require.Contains(t, bodies, pageOf(name), "add %s to the navigation", name)
		}
	})
}

// TestMarkdownPages checks that every page is Markdown too.
func TestMarkdownPages(t *testing.T) {
	t.Parallel()
	bodies := crawl(t)
	conformance.Covers(t, "A22.1")
	index, full := get(t, "/docs/llms.txt").Body.String(), get(t, "/docs/llms-full.txt").Body.String()
	for path, body := range bodies {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		markdown := path + ".md"
		if path == "/docs" {
			markdown = "/docs/quickstart.md"
		}
		text := bodies[markdown]
		require.Regexp(t, "^# ", text, path)
		for _, target := range targets(t, markdown, text) {
			require.Regexp(t, `\.(md|yaml)$`, target.Path, markdown)
		}
		if path == "/docs/guides" || strings.HasPrefix(path, "/docs/errors/") {
			continue // Their indexes list them.
		}
		require.Contains(t, index, docsURL+strings.TrimPrefix(markdown, "/docs")+"): ")
		require.Equal(t, !strings.HasPrefix(path, "/docs/operate"), strings.Contains(full, text), path)
	}
	require.Contains(t, full, publicURL+"/v1/")
	require.NotContains(t, full, "http://127.0.0.1:8080")
}

// TestHosts checks that no page names another host. The viewer's own files may: the policy of its page keeps them from
// loading anything from there.
func TestHosts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		publicURL: true, "https://help.example.org": true,
		"http://127.0.0.1:8081": true, // The default address of the receiver.
		"http://127.0.0.1:9085": true, // The default OPS_ADDR of roomsensor mqtt, in a sample of Markdown.
		"http://www.w3.org":     true, // The namespace of SVG.
	}
	for path, body := range crawl(t) {
		if strings.Contains(path, "/assets/swagger-ui.") || mayNameHosts(path) {
			continue
		}
		for _, found := range address.FindAllString(body, -1) {
			require.True(t, known[found], "%s names %s", path, found)
		}
	}
}

var (
	code         = regexp.MustCompile(`(?s)<code class="language-.*?</code>`)
	placeholder  = regexp.MustCompile(`<span class="fill" data-field="(key|device|ingest|unit)">YOUR_[A-Z_]+</span>`)
	language     = regexp.MustCompile(`<div class="sample" data-language="([^"]*)">`)
	meta         = regexp.MustCompile(`<meta name="description" content="([^"]+)">`)
	title        = regexp.MustCompile(`<title>([^<]+) · roomsensor</title>`)
	fenced       = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	menu         = regexp.MustCompile(`(?s)<nav[^>]* aria-label="Pages">(.*?)</nav>`)
	next         = regexp.MustCompile(`<a class="next" rel="next" href="([^"]*)">`)
)

// submatches returns the first group of each match.
func submatches(r *regexp.Regexp, text string) (all []string) {
	for _, match := range r.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// TestMenus checks that a page has the menu of its readers, API clients or operators, and that the API reference is in
// both, so that two clicks on a phone lead to it.
func TestMenus(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for path, body := range crawl(t) {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		menus := submatches(menu, body)
		require.Len(t, menus, 2, "%s: beside the page, and on a phone", path)
		require.Equal(t, menus[0], menus[1], path)
		all := targets(t, path, "<!doctype html>"+menus[0])
		require.Equal(t, []string{"/docs", "/docs/operate"}, []string{all[0].Path, all[1].Path}, "the switch")
		reference := 0
		for _, target := range all[2:] {
			listed[target.Path] = true
			if target.Path == "/docs/reference" {
				reference++
				continue
			}
			require.Equal(t, forOperators(path), forOperators(target.Path), "%s lists %s", path, target.Path)
		}
		require.Equal(t, 1, reference, path)
	}
	for _, name := range texts(t) {
		require.True(t, listed[pageOf(name)], name)
	}
}

// TestPages checks that every page has a title and a description of its own, and that "next" leads through all texts of
// a menu.
func TestPages(t *testing.T) {
	t.Parallel()
	titles, descriptions := map[string]string{}, map[string]string{}
	for path, body := range crawl(t) {
		if !strings.HasPrefix(body, "<!doctype html>") {
			continue
		}
		for seen, found := range map[*map[string]string][]string{
			&titles: submatches(title, body), &descriptions: submatches(meta, body),
		} {
			require.Len(t, found, 1, path)
			require.Empty(t, (*seen)[found[0]], "%s has the title or description of another page", path)
			(*seen)[found[0]] = path
		}
	}
	visited := map[string]bool{}
	for _, first := range []string{"/docs", "/docs/operate"} {
		for path := first; path != "" && !visited[path]; {
			require.Equal(t, forOperators(first), forOperators(path), path)
			visited[path] = true
			path = nextPage(t, path)
		}
	}
	for _, name := range texts(t) {
		require.True(t, visited[pageOf(name)], name)
	}
}

// nextPage returns the path of the page to which "next" leads, or "".
func nextPage(t *testing.T, path string) string {
	t.Helper()
	body := get(t, path).Body.String()
	if strings.Contains(body, `id="viewer"`) { // The references have no links to their neighbors.
		return map[string]string{"/docs/reference": "/docs/receiver", "/docs/receiver": "/docs/api-changes"}[path]
	}
	links := submatches(next, body)
	if len(links) == 0 {
		return ""
	}
	return targets(t, path, `<!doctype html><a href="`+links[0]+`">`)[0].Path
}

// TestSearchIndex checks that each entry leads to a place that exists, and that every page is in the index.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	var entries []struct {
		U string `json:"u"`
	}
	require.NoError(t, json.Unmarshal(get(t, "/docs/assets/search.json").Body.Bytes(), &entries))
	bodies, indexed := crawl(t), map[string]bool{}
	for _, entry := range entries {
		path, fragment, _ := strings.Cut("/docs"+entry.U, "#")
		require.Contains(t, bodies, path)
		indexed[path] = true
		if fragment != "" && !strings.HasPrefix(fragment, "/") { // Swagger UI makes its anchors in the browser.
			require.Contains(t, bodies[path], ` id="`+fragment+`"`, entry.U)
		}
	}
	for path, body := range bodies {
		require.Equal(t, strings.HasPrefix(body, "<!doctype html>") && path != "/docs/guides", indexed[path], path)
	}
}

// TestReference checks that the page of the API shows every operation, and says that HEAD works wherever GET does.
func TestReference(t *testing.T) {
	t.Parallel()
	require.Contains(t, get(t, "/docs/reference").Body.String(), `data-document="../sensors/reference.json"`)
	whole, shown := map[string]bool{}, map[string]bool{}
	operations(load(t, docs.OpenAPI()), func(name string, _ *openapi3.Operation) {
		whole[name] = true
	})
	document := load(t, get(t, "/docs/reference.json").Body.Bytes())
	operations(document, func(name string, _ *openapi3.Operation) { shown[name] = true })
	require.Equal(t, whole, shown)
	require.Contains(t, document.Info.Description, "`HEAD` works wherever `GET` does")
	for _, text := range []string{string(docs.OpenAPI()), string(docs.Receiver())} {
		require.NotContains(t, text, "Try it out", "other readers of a document have no page")
	}
	require.Contains(t, document.Components.Parameters["MetadataFilter"].Value.Description, "Try it out")
	filter := document.Components.Parameters["MetadataFilter"].Value.Schema.Value
	require.Nil(t, filter.Default, "the viewer shows it as Map {}")
	require.Equal(t, map[string]any{}, filter.Example, "the viewer begins with it")
	require.Nil(t, document.Components.Parameters["From"].Value.Example, "the viewer would send it")
}

// TestContrast checks that all texts are readable (WCAG 2.2, 1.4.3), in both color schemes.
func TestContrast(t *testing.T) {
	t.Parallel()
	style := get(t, "/docs/assets/style.css").Body.String()
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(style, -1)
	require.Len(t, schemes, 2)
	for _, scheme := range schemes {
		colors := map[string]float64{}
		for _, match := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`).FindAllStringSubmatch(scheme[1], -1) {
			colors[match[1]] = luminance(t, match[2])
		}
		require.Len(t, colors, 12)
		for _, text := range []string{"text", "soft", "accent", "comment", "string", "number", "keyword", "word"} {
			for _, back := range []string{"back", "raised", "mark"} {
				lighter, darker := max(colors[text], colors[back]), min(colors[text], colors[back])
				require.GreaterOrEqual(t, (lighter+0.05)/(darker+0.05), 4.5, "%s on %s", text, back)
			}
		}
	}
}

// luminance returns the relative luminance of a color.
func luminance(t *testing.T, color string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(color[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		channel := float64(value) / 255
		if channel <= 0.04045 {
			sum += weight * channel / 12.92
		} else {
			sum += weight * math.Pow((channel+0.055)/1.055, 2.4)
		}
	}
	return sum
}

// block is a fenced block of JSON; the word after json names its schema.
var block = regexp.MustCompile("(?s)```json ?(\\w*)\n(.*?)```")

func TestMarkdown(t *testing.T) {
	t.Parallel()
	t.Run("renders", func(t *testing.T) {
		t.Parallel()
		for _, name := range texts(t) {
			body := get(t, pageOf(name)).Body.String()
			require.Equal(t, 1, strings.Count(body, "<h1"), name)
			require.NotContains(t, body, "```", name)
			require.NotContains(t, body, "|---", name)
		}
	})
	t.Run("marks the placeholders in samples, so that the form can replace them", func(t *testing.T) {
		t.Parallel()
		marked := 0
		for _, name := range texts(t) {
			for _, code := range code.FindAllString(get(t, pageOf(name)).Body.String(), -1) {
				spans := placeholder.FindAllString(code, -1)
				require.Len(t, spans, strings.Count(code, "YOUR_"), "%s: %s", name, code)
				marked += len(spans)
			}
		}
		require.NotZero(t, marked)
	})
	t.Run("puts samples in several languages side by side", func(t *testing.T) {
		t.Parallel()
		_, rest, ok := strings.Cut(get(t, "/docs/guides/paging").Body.String(), `<div class="samples">`)
		require.True(t, ok)
		group, _, ok := strings.Cut(rest, "<h2")
		require.True(t, ok)
		require.Equal(t, []string{"curl", "Python", "R", "JavaScript", "Go"}, submatches(language, group))
		require.Contains(t, get(t, "/docs/guides/recipes").Body.String(), `data-language="Shell"`, "it does not call curl")
		require.Contains(t, group, `<span class="k">import</span>`, "it is highlighted")
	})
	t.Run("names the columns in the cells of tables, for narrow screens", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, get(t, "/docs/errors").Body.String(), `<td data-label="Retry?">Not without a change.</td>`)
	})
	t.Run("shows responses that the OpenAPI documents allow", func(t *testing.T) {
		t.Parallel()
		api, receiver := load(t, docs.OpenAPI()), load(t, docs.Receiver())
		shown := 0
		for _, name := range texts(t) {
			if strings.HasPrefix(name, "operate/") { // Their blocks are the output of commands.
				continue
			}
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
		for _, text := range []string{strconv.Itoa(info.Status), info.Cause, info.Fix, info.Retry, `"code": "` + string(info.Code) + `"`} {
			require.Contains(t, page, text)
		}
		require.NotEmpty(t, info.Guides, info.Code)
		for _, guide := range info.Guides { // TestLinks follows the links.
			require.Contains(t, page, `<li><a href="../guides/`+guide+`">`, info.Code)
		}
		_, rest, ok := strings.Cut(page, `<pre class="wrapped"><code>`)
		require.True(t, ok)
		example, _, ok := strings.Cut(rest, "</code>")
		require.True(t, ok)
		require.NoError(t, check(t, document.Components.Schemas["Error"], example), info.Code)
	}
}
