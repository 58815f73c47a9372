package browser_test

import (
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed audit.js
var auditScript string

// audit returns what is wrong with the accessibility of the page.
func (p *tab) audit(t *testing.T) []string {
	t.Helper()
	return p.named(t, evaluate[[]string](t, p, auditScript))
}

// frame is a page without problems; %s is its content.
const frame = `<!doctype html><html lang="en"><title>Test</title><meta name="viewport" content="width=device-width">
	<style>:root { color-scheme: light dark } @media (prefers-color-scheme: dark) { .dim { color: #333 } }</style>
	<main><h1>Test</h1>%s</main></html>`

// servePage serves one page at each path.
func servePage(t *testing.T, content string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, content) // A tab that was closed does not need it.
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestAudit checks that the audit finds each kind of problem, and none on a page without.
func TestAudit(t *testing.T) {
	t.Parallel()
	phone, dark := newTab(t, view{width: 390, scripts: true}), newTab(t, view{width: 390, dark: true})
	for _, c := range []struct{ content, want string }{
		{`<p>Text <a href="/">link</a> text</p><label>Name <input value="x"></label>`, ""},
		{`<p style="color: #888">Text</p>`, `<p> "Text": contrast 3.54 is below 4.5`},
		{`<p style="color: #888; font-size: 24px">Text</p>`, ""},
		{`<p style="color: rgb(0 0 0 / 40%)">Text</p>`, `<p> "Text": contrast 2.85 is below 4.5`},
		{`<div style="opacity: .4"><p>Text</p></div>`, `<p> "Text": contrast 2.85 is below 4.5`},
		{`<div style="background: black"><p>Text</p></div>`, `<p> "Text": contrast 1.00 is below 4.5`},
		{`<div style="background: linear-gradient(red, blue)"><p>Text</p></div>`, `<p> "Text": the contrast of text on an image cannot be computed`},
		{`<svg role="img" aria-label="Chart" width="90" height="90"><rect width="90" height="90"/><text y="50">CO2</text></svg>`, `<text> "CO2": contrast 1.00 is below 4.5`},
		{`<svg role="img" aria-label="Chart" width="90" height="90"><text y="50" fill="#888">CO2</text></svg>`, `<text> "CO2": contrast 3.54 is below 4.5`},
		{`<svg width="90" height="90"></svg>`, `<svg> "": the image needs role=img and a name, or aria-hidden`},
		{`<input aria-label="Name" style="border: 1px solid #ccc; background: white">`, `<input> "": the edge of the control has contrast 1.61, below 3`},
		{`<input placeholder="Name">`, `<input> "": the control has no label`},
		{`<button type="button"></button>`, `<button> "": it has no name`},
		{`<img src="data:,">`, `<img> "": the image has no alt`},
		{`<table><tr><td>1</td></tr></table>`, `<table> "1": the table has no header cell`},
		{`<p id="a">1</p><p id="a">2</p>`, `<p#a> "2": the id occurs twice`},
		{`<p aria-describedby="b">1</p>`, `<p> "1": aria-describedby names b, which does not exist`},
		{`<h3>Deep</h3>`, `<h3> "Deep": a heading of level 3 follows level 1`},
		{`<h1>Second</h1>`, `page: it has 2 headings of level 1, not 1`},
		{`<div style="width: 500px">Wide</div>`, `<div> "Wide": the page scrolls sideways by 118 px`},
		{`<div style="overflow-x: auto"><div style="width: 500px">Wide</div></div>`, ""},
		{`<div><a href="/1" style="display: inline-block; width: 20px; height: 20px">1</a><a href="/2" style="display: inline-block; width: 20px; height: 20px">2</a></div>`, `<a> "1": the target is 20 by 20 px, and too close to <a> "2"`},
	} {
		phone.open(t, servePage(t, fmt.Sprintf(frame, c.content)))
		got := evaluate[[]string](t, phone, auditScript)
		if c.want == "" {
			require.Empty(t, got, c.content)
			continue
		}
		require.Contains(t, got, c.want, c.content)
	}
	address := servePage(t, fmt.Sprintf(frame, `<p class="dim">Text</p>`))
	phone.open(t, address)
	require.Empty(t, phone.audit(t))
	dark.open(t, address)
	require.Len(t, dark.audit(t), 1, "the colors are those of the dark scheme, also without scripts")
}

// TestKeyboard checks that the walk with the Tab key finds each kind of problem.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	p := newTab(t, desktop)
	p.open(t, servePage(t, fmt.Sprintf(frame, `<p><a href="/">link</a></p><label>Name <input></label><button>Go</button>`)))
	require.Empty(t, p.walk(t))
	p.fill(t, "Name", "Hall")
	require.Equal(t, "Hall", evaluate[string](t, p, `document.querySelector('input').value`))

	p.open(t, servePage(t, fmt.Sprintf(frame, `<a href="/" style="outline: none">link</a>`)))
	p.press(t, "\t")
	require.False(t, p.focused(t).Indicator)
	p.open(t, servePage(t, fmt.Sprintf(frame, `<a href="/">link</a><div style="position: fixed; inset: 0; background: white"></div>`)))
	p.press(t, "\t")
	require.True(t, p.focused(t).Covered)
}

// TestQuiet checks that a tab notices what a page does wrong.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, content string }{
		{"", `<script>console.error("no")</script>`},
		{"", `<script>throw new Error("no")</script>`},
		{"default-src 'none'", `<p style="color: red">Text</p>`},
		{"default-src 'none'", `<script>1</script>`},
		{"", `<img src="/static/missing.png" alt="">`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Security-Policy", c.policy)
			_, _ = fmt.Fprintf(w, frame, c.content) // As above.
		}))
		t.Cleanup(server.Close)
		p := newTab(t, desktop)
		p.open(t, server.URL)
		require.Eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.messages) > 0
		}, patience, patience/1000, "%v", c)
	}
}
