package browser_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testKeys creates an API key, uses it, replaces it by another one while it stays valid, and revokes that one.
func (f *flow) testKeys(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Admin)
	p.enter(t, "Keys")
	p.enter(t, "Create an API key")
	p.fill(t, "What is it for?", "Analyst")
	p.tabTo(t, "In a year")
	p.press(t, kb.ArrowUp)
	require.Equal(t, "In a month", p.focused(t).Name)
	p.enter(t, "Create")
	first := p.secret(t, "API key")
	f.requireStatus(t, http.StatusOK, first)
	p.copyText(t, "Copy")
	p.enter(t, "I have copied it")
	p.requireNoSecret(t, first)

	p.enter(t, "Analyst")
	p.requireNoSecret(t, first)
	p.choose(t, "This key stays valid for", "1 hour")
	p.enter(t, "Replace")
	second := p.secret(t, "API key")
	require.NotEqual(t, first, second)
	require.Contains(t, p.text(t), "Change your programs to the new one before.")
	f.requireStatus(t, http.StatusOK, second)
	f.requireStatus(t, http.StatusOK, first)
	var left, month time.Duration
	f.scan(t, []any{&left, &month}, `SELECT o.expires_at - now(), n.expires_at - now() FROM api_keys o, api_keys n
		WHERE o.key_id = $1 AND n.key_id = $2`, keyID(first), keyID(second))
	require.InDelta(t, time.Hour, left, float64(patience))
	require.InDelta(t, 30*24*time.Hour, month, float64(3*24*time.Hour), "a month from now, as the first one")

	for _, key := range []string{first, second} {
		p.open(t, f.path+"/keys/api/"+keyID(key))
		p.expand(t, "Revoke this key…")
		p.enter(t, "Revoke "+keyID(key))
		require.Contains(t, p.text(t), "The key "+keyID(key)+" is revoked.")
		f.requireStatus(t, http.StatusUnauthorized, key)
	}
	p.expand(t, "Revoked and expired (2)")
	p.requireQuiet(t)
}

// secret returns the key that the page shows.
func (p *tab) secret(t *testing.T, kind string) string {
	t.Helper()
	require.Contains(t, p.text(t), "Copy this "+kind+" now")
	return evaluate[string](t, p, `document.getElementById('secret').textContent`)
}

// requireNoSecret checks that the page does not contain a key.
func (p *tab) requireNoSecret(t *testing.T, key string) {
	t.Helper()
	secret := key[strings.LastIndex(key, "_")+1:]
	require.NotContains(t, evaluate[string](t, p, `document.documentElement.outerHTML`), secret)
}

// keyID returns the public part of a key.
func keyID(key string) string { return strings.Split(key, "_")[1] }
