package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	teams := p.get(t, "/teams")
	require.Equal(t, http.StatusOK, teams.status)
	require.Equal(t, "Team <&>", teams.find(".teams a").Text())
	require.Equal(t, "/teams/"+e.team.String(), p.get(t, "/").location())

	require.Equal(t, "/sign-in", p.post(t, "/sign-out", nil).location())
	require.Empty(t, p.cookie(t))
	require.Equal(t, "/sign-in?next=%2Fteams", p.get(t, "/teams").location())
}

func TestSignInRefuses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	id := e.addUser(t, "ana@example.com")
	for _, form := range []url.Values{
		{"email": {"ana@example.com"}, "password": {"wrong"}},
		{"email": {"nobody@example.com"}, "password": {secretPassword}},
		{},
	} {
		answer := p.post(t, "/sign-in", form)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status)
		require.Contains(t, answer.text, "No account has this email address and password.")
		require.Equal(t, form.Get("email"), answer.find("#email").AttrOr("value", ""))
	}
	e.exec(t, `UPDATE users SET disabled_at = now() WHERE id = $1`, id)
	answer := p.post(t, "/sign-in", url.Values{"email": {"ana@example.com"}, "password": {secretPassword}})
	require.Equal(t, http.StatusUnprocessableEntity, answer.status)
	require.Empty(t, p.cookie(t), "only a sign-in creates a session")
}

// TestSignInNext checks that a link to the sign-in page leads to pages of the dashboard only.
func TestSignInNext(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	e.addUser(t, "ana@example.com")
	for next, want := range map[string]string{
		"/teams?a=b":            "/teams?a=b",
		"":                      "/",
		"//evil.example":        "/",
		"/\\evil.example":       "/",
		"/\t/evil.example":      "/",
		"https://evil.example/": "/",
		"javascript:alert(1)":   "/",
	} {
		form := p.get(t, "/sign-in?"+url.Values{"next": {next}}.Encode()).find("[name=next]").AttrOr("value", "")
		require.Equal(t, want, form, next)
		answer := p.post(t, "/sign-in", url.Values{
			"email": {"Ana@Example.com"}, "password": {secretPassword}, "next": {next},
		})
		require.Equal(t, want, answer.location(), next)
		p.post(t, "/sign-out", nil)
	}
}
