package browser_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience limits the time of a page on a busy machine.
const patience = time.Minute

// view is how a person looks at a page.
type view struct {
	width   int64 // CSS pixels
	dark    bool
	scripts bool
}

// desktop is the view of tests that do not depend on it.
var desktop = view{width: 1280, scripts: true}

// views are a phone, a desktop and a tablet, each light and dark.
var views = []view{
	{width: 390, scripts: true},
	{width: 390, dark: true, scripts: true},
	{width: 1280, scripts: true},
	{width: 1280, dark: true, scripts: true},
	{width: 768, scripts: true},
	{width: 768, dark: true, scripts: true},
}

func (v view) String() string {
	scheme, scripts := "light", ""
	if v.dark {
		scheme = "dark"
	}
	if !v.scripts {
		scripts = "-without-scripts"
	}
	return fmt.Sprintf("%d-%s%s", v.width, scheme, scripts)
}

// tab is a tab with its own cookies. One goroutine uses it.
type tab struct {
	ctx  context.Context //nolint:containedctx // The driver keeps its tab in it.
	view view

	mu       sync.Mutex
	messages []string        // errors and warnings of the console, and violations of the Content-Security-Policy
	hosts    map[string]bool // to which pages sent requests
	pages    map[network.RequestID]bool
}

// newTab opens an empty tab, which is closed at the end of the test.
func newTab(t *testing.T, v view) *tab {
	t.Helper()
	browser, err := chromium()
	require.NoError(t, err)
	return openTab(t, v, browser, chromedp.WithNewBrowserContext())
}

// another opens another tab, which shares the cookies.
func (p *tab) another(t *testing.T) *tab {
	t.Helper()
	return openTab(t, p.view, p.ctx)
}

func openTab(t *testing.T, v view, from context.Context, options ...chromedp.ContextOption) *tab { //nolint:revive // The tab has from.
	t.Helper()
	ctx, stop := chromedp.NewContext(from, options...)
	t.Cleanup(stop)
	p := &tab{ctx: ctx, hosts: map[string]bool{}, pages: map[network.RequestID]bool{}}
	require.NoError(t, chromedp.Listen(ctx, p.record))
	p.resize(t, v)
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !v.scripts})
	require.NoError(t, err)
	return p
}

// resize shows the page in another size and color scheme.
func (p *tab) resize(t *testing.T, v view) {
	t.Helper()
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	p.view = v
	require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(v.width, 900)))
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(t, err)
}

// record notes what the page logs and requests.
func (p *tab) record(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.messages = append(p.messages, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			p.messages = append(p.messages, fmt.Sprintf("console.%s: %+v", e.Type, e.Args))
		}
	case *log.EventEntryAdded:
		// Tests check the status of the page itself.
		page := e.Entry.Source == "network" && p.pages[e.Entry.NetworkRequestID]
		if !page && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			p.messages = append(p.messages, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		p.pages[e.RequestID] = e.Type == network.ResourceTypeDocument
		if target, err := url.Parse(e.Request.URL); err == nil && target.Host != "" {
			p.hosts[target.Host] = true
		}
	}
}

// within returns a context for one step.
func (p *tab) within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a page and returns the response to it.
func (p *tab) open(t *testing.T, address string) *network.Response {
	t.Helper()
	response, err := chromedp.Run(p.within(t), chromedp.NavigateResponse(address))
	require.NoError(t, err, address)
	return response
}

// do runs an action that changes the page.
func (p *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(p.within(t), actions...))
}

// follow runs an action that leads to another page, and waits for that page.
func (p *tab) follow(t *testing.T, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	_, err := chromedp.Run(p.within(t), chromedp.WaitEvent(page.LoadEventFired,
		func(page.EventLoadEventFired) bool { return true }, action))
	require.NoError(t, err)
}

// evaluate returns the value of an expression. It works without scripts too: only those of the page are off.
func evaluate[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(p.within(t), chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return value
}

// text returns what a person can read on the page.
func (p *tab) text(t *testing.T) string {
	t.Helper()
	return evaluate[string](t, p, `document.body.innerText`)
}

// address returns the URL of the page.
func (p *tab) address(t *testing.T) string {
	t.Helper()
	return evaluate[string](t, p, `location.href`)
}

// named adds the path of the page to problems.
func (p *tab) named(t *testing.T, problems []string) []string {
	t.Helper()
	for i := range problems {
		problems[i] = evaluate[string](t, p, `location.pathname`) + " " + problems[i]
	}
	return problems
}

// requireQuiet checks that pages logged no error and requested nothing of another host.
func (p *tab) requireQuiet(t *testing.T) {
	t.Helper()
	here, err := url.Parse(p.address(t))
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.messages, here.Path)
	for host := range p.hosts {
		require.Equal(t, here.Host, host, "a request to another host")
	}
}

// keep writes a screenshot of the whole page to the directory SCREENSHOTS, if it is set.
func (p *tab) keep(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.within(t), chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o755)) //nolint:gosec // The person who runs the tests names it.
	name = strings.NewReplacer("/", "-", "?", "-", "&", "-", ":", "").Replace(name)
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.png", name, p.view))
	require.NoError(t, os.WriteFile(path, picture, 0o600)) //nolint:gosec // As above.
}
