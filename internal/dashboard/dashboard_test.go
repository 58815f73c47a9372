package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestErrorPages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	for path, want := range map[string]int{
		"/unknown":                               http.StatusNotFound,
		"/teams/none":                            http.StatusNotFound,
		"/teams/" + e.team.String() + "/unknown": http.StatusNotFound,
		"/static/x/unknown.css":                  http.StatusNotFound,
	} {
		answer := p.get(t, path)
		require.Equal(t, want, answer.status, path)
		require.Equal(t, "text/html; charset=utf-8", answer.header.Get("Content-Type"), path)
		require.NotEmpty(t, answer.find("h1").Text(), path)
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	for _, path := range []string{"/sign-in", "/unknown"} {
		h := p.get(t, path).header
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self';")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", h.Get("Referrer-Policy"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.NotEmpty(t, h.Get("X-Request-Id"))
	}
}

// TestAccessLog checks that the log names people by their ids only, and repeats the browser of failed requests only.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	link := p.invite(t, "kim@example.com", "viewer")
	browser := map[string]string{"User-Agent": "Browser/1"}
	p.send(t, http.MethodGet, "/teams", nil, browser)
	p.send(t, http.MethodGet, "/unknown/"+strings.TrimPrefix(link, "/invitation/"), nil, browser)
	e.stranger(t).send(t, http.MethodPost, "/sign-in", url.Values{"email": {"lee@example.com"}, "password": {"x"}}, browser)
	var found struct {
		UserID string `json:"user_id"`
		Path   string `json:"path"`
		Agent  string `json:"user_agent"`
	}
	lines := map[string]string{} // by route
	for line := range strings.Lines(e.log.String()) {
		var fields struct {
			Route string `json:"route"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		lines[fields.Route] = line
	}
	require.NoError(t, json.Unmarshal([]byte(lines["/teams"]), &found))
	require.Equal(t, p.id.String(), found.UserID)
	require.Empty(t, found.Agent)
	require.NoError(t, json.Unmarshal([]byte(lines["unmatched"]), &found))
	require.Equal(t, "Browser/1", found.Agent)
	require.Equal(t, "/unknown/...", found.Path)
	require.NotContains(t, lines["/sign-in"], "user_id")
	require.NotContains(t, e.log.String(), "@example.com")
	require.NotContains(t, e.log.String(), strings.TrimPrefix(link, "/invitation/"))
}

// TestOtherSites checks that no other site can send forms (CSRF).
func TestOtherSites(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	for _, header := range []map[string]string{
		{"Sec-Fetch-Site": "cross-site"},
		{"Sec-Fetch-Site": "same-site"},
		{"Origin": "https://evil.example"},
		{"Origin": "null"},
	} {
		answer := p.send(t, http.MethodPost, "/sign-out", url.Values{}, header)
		require.Equal(t, http.StatusForbidden, answer.status, header)
		require.Contains(t, answer.text, "sent from another site")
	}
	require.Equal(t, http.StatusOK, p.get(t, "/teams").status, "still signed in")
}

func TestAssets(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	style := p.get(t, "/sign-in").find("link[rel=stylesheet]").AttrOr("href", "")
	answer := p.get(t, style)
	require.Equal(t, http.StatusOK, answer.status)
	require.Equal(t, "text/css; charset=utf-8", answer.header.Get("Content-Type"))
	require.Equal(t, "public, max-age=31536000, immutable", answer.header.Get("Cache-Control"))

	other := p.get(t, "/static/older/style.css")
	require.Equal(t, http.StatusOK, other.status, "of another replica, during an upgrade")
	require.Equal(t, "private, no-cache", other.header.Get("Cache-Control"))
	again := p.send(t, http.MethodGet, style, nil, map[string]string{"If-None-Match": other.header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.status)
}
