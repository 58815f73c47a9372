package browser_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
)

// docsPages are one page of each kind. The reference is not among them: Swagger UI draws it, and a filter makes its dark
// colors.
var docsPages = []string{
	"/docs", "/docs/guides/authentication", "/docs/guides/time-windows", "/docs/guides/recipes", "/docs/errors",
	"/docs/glossary", "/docs/operate", "/docs/operate/runbooks/RoomsensorConnectionsExhausted", "/docs/missing",
}

// docsURL serves the documentation, once.
var docsURL = sync.OnceValues(func() (string, error) {
	server := httptest.NewUnstartedServer(nil)
	address := "http://" + server.Listener.Addr().String()
	pages, err := docs.Handler(docs.Options{PublicURL: address, DocsURL: address + "/docs"})
	if err != nil {
		return "", err
	}
	server.Config.Handler = pages
	server.Start()
	closers = append(closers, server.Close)
	return address, nil
})

// TestDocs looks at pages of the documentation.
func TestDocs(t *testing.T) {
	t.Parallel()
	base, err := docsURL()
	require.NoError(t, err)
	for _, v := range views {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			p := newTab(t, v)
			var problems []string
			for _, path := range docsPages {
				response := p.open(t, base+path)
				if path != "/docs/missing" {
					require.EqualValues(t, http.StatusOK, response.Status, path)
				}
				p.keep(t, path)
				p.requireQuiet(t)
				problems = append(problems, p.audit(t)...)
				if v == desktop {
					problems = append(problems, p.walk(t)...)
				}
			}
			require.Empty(t, problems)
		})
	}
}

// TestDocsKeyboard follows links with the keyboard alone, with and without scripts.
func TestDocsKeyboard(t *testing.T) {
	t.Parallel()
	base, err := docsURL()
	require.NoError(t, err)
	for _, scripts := range []bool{true, false} {
		p := newTab(t, view{width: 1280, scripts: scripts})
		p.open(t, base+"/docs")
		p.enter(t, "Rate limits")
		require.Equal(t, base+"/docs/guides/rate-limits", p.address(t))
		require.Contains(t, p.text(t), "RateLimit")
		p.enter(t, "Operate the service")
		require.Equal(t, base+"/docs/operate", p.address(t))
		p.enter(t, "Scaling")
		require.Equal(t, base+"/docs/operate/scaling", p.address(t))
		p.enter(t, "API reference")
		require.Equal(t, base+"/docs/reference", p.address(t))
		p.requireQuiet(t)
	}
}

// TestDocsKey checks that a key that was copied with what is around it fills the samples, and requests of the reference.
func TestDocsKey(t *testing.T) {
	t.Parallel()
	base, err := docsURL()
	require.NoError(t, err)
	p := newTab(t, desktop)
	p.open(t, base+"/docs")
	p.expand(t, "Put your key and device into the samples")
	p.fill(t, "API key", " Bearer rsk_abc_def ")
	p.press(t, kb.Enter)
	require.Contains(t, p.text(t), "Authorization: Bearer rsk_abc_def")
	p.open(t, base+"/docs/reference")
	p.wait(t, `document.querySelector('.btn.authorize.locked') !== null`)
	p.requireQuiet(t)
}
