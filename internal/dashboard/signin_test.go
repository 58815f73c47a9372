package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dashboard"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	teams := p.get(t, "/teams")
	require.Equal(t, http.StatusOK, teams.status)
	require.Equal(t, "Team <&>", teams.find(".teams a").Text())
	require.Equal(t, "/teams/"+e.team.String(), p.get(t, "/").location())
	other := e.addTeam(t, "Other")
	e.addMember(t, other, p.id, roomsensor.Viewer)
	require.Equal(t, "/teams", p.get(t, "/").location(), "a person of several teams chooses")
	for _, team := range []uuid.UUID{other, e.team} {
		p.get(t, "/teams/"+team.String()+"/nights")
		require.Equal(t, "/teams/"+team.String(), p.get(t, "/").location(), "the browser remembers the team")
	}

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

// heldSignIns is a store that checks no password until it is released.
type heldSignIns struct {
	*store.Store
	began    chan netip.Addr // addresses whose passwords are checked
	released chan struct{}
}

func (s *heldSignIns) CountSignIn(ctx context.Context, a accounts.SignInAttempt) (time.Duration, error) {
	s.began <- a.Address
	<-s.released
	return s.Store.CountSignIn(ctx, a)
}

// TestSignInTurns checks that one password of a network is checked at a time, that few requests wait for their turn, and
// that those of other networks do not.
func TestSignInTurns(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	held := &heldSignIns{e.store, make(chan netip.Addr, 10), make(chan struct{})}
	p := e.stranger(t)
	p.url = e.serve(t, held, func(c *dashboard.Config) {
		c.Clients.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}).URL
	release := sync.OnceFunc(func() { close(held.released) })
	t.Cleanup(release) // A failed test must not wait for the requests.
	answers := make(chan *page, 10)
	signIn := func(address string) {
		answers <- p.send(t, http.MethodPost, "/sign-in", url.Values{"email": {"ana@example.com"}},
			map[string]string{"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": address})
	}
	for i := range 6 { // One begins and four wait.
		go signIn(fmt.Sprintf("192.0.2.%d", i))
	}
	require.Eventually(t, func() bool { return len(answers) == 1 }, 10*time.Second, 10*time.Millisecond)
	refused := <-answers
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "5", refused.header.Get("Retry-After"))
	require.Len(t, held.began, 1)
	<-held.began
	go signIn("198.51.100.1")
	require.Eventually(t, func() bool { return len(held.began) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "198.51.100.1", (<-held.began).String())
	release()
	for range 6 {
		require.Equal(t, http.StatusUnprocessableEntity, (<-answers).status)
	}
}
