package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/dashboard"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store"
	"roomsensor/test/proctest"
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

	require.Equal(t, "/sign-in?signed-out=1", p.post(t, "/sign-out", nil).location())
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

// TestSignInLog checks that the log has each attempt to sign in: who succeeded, and from where somebody failed.
func TestSignInLog(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	id := e.addUser(t, "ana@example.com")
	for secret, want := range map[string]string{
		"wrong":        `"route":"/sign-in","method":"POST","status":422,.*"client":"127.0.0.1","user_agent":"Browser/1"`,
		secretPassword: `"route":"/sign-in","method":"POST","status":303,.*"user_id":"` + id.String() + `"`,
	} {
		p.send(t, http.MethodPost, "/sign-in", url.Values{"email": {"ana@example.com"}, "password": {secret}},
			map[string]string{"User-Agent": "Browser/1"})
		line := regexp.MustCompile(want) // It is written after the response.
		require.Eventually(t, func() bool { return line.MatchString(e.log.String()) }, proctest.Patience, 10*time.Millisecond, want)
	}
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

// TestCookies checks that browsers send the cookies of the dashboard over TLS and to this host only, and show them to no
// script.
func TestCookies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.stranger(t)
	id := e.addUser(t, "ana@example.com")
	e.addMember(t, e.team, id, roomsensor.Editor)
	p.url = e.serve(t, e.store, func(c *dashboard.Config) { c.URL = "https://dashboard.example.com" }).URL
	form := url.Values{"email": {"ana@example.com"}, "password": {secretPassword}}
	set := p.post(t, "/sign-in", form).header.Values("Set-Cookie")
	session, _, _ := strings.Cut(set[0], ";")
	team := p.send(t, http.MethodGet, "/teams/"+e.team.String(), nil, map[string]string{"Cookie": session})
	require.Equal(t, http.StatusOK, team.status)
	set = append(set, team.header.Values("Set-Cookie")...)
	stranger := e.stranger(t)
	stranger.url = p.url
	kept := stranger.post(t, "/teams/"+e.team.String()+"/settings", url.Values{"name": {"x"}})
	set = append(set, kept.header.Values("Set-Cookie")...)
	var names []string
	for _, line := range set {
		cookie, err := http.ParseSetCookie(line)
		require.NoError(t, err)
		names = append(names, cookie.Name)
		require.True(t, cookie.Secure && cookie.HttpOnly, line)
		require.Equal(t, http.SameSiteLaxMode, cookie.SameSite, line)
		require.Equal(t, "/", cookie.Path, line)
		require.Empty(t, cookie.Domain, line)
	}
	slices.Sort(names)
	require.Equal(t, []string{"__Host-roomsensor", "__Host-roomsensor-form", "__Host-roomsensor-team"}, slices.Compact(names))
}

// TestSessionEnds checks when a session ends: 12 hours after the last request, 30 days after the sign-in, at the
// sign-out, after which its cookie is worth nothing, and when the account is disabled.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	var idle, lifetime float64 // in hours
	read := func() {
		require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT extract(epoch FROM expires_at - now()) / 3600,
			extract(epoch FROM (convert_from(data, 'UTF8')::jsonb ->> 'deadline')::timestamptz - now()) / 3600
			FROM sessions WHERE expires_at > now()`).Scan(&idle, &lifetime))
	}
	read()
	require.InDelta(t, 12, idle, 0.1)
	require.InDelta(t, 30*24, lifetime, 0.1)
	e.exec(t, `UPDATE sessions SET expires_at = now() + interval '1 hour', data = convert_to(jsonb_set(
		convert_from(data, 'UTF8')::jsonb, '{deadline}', to_jsonb(now() + interval '2 hours'))::text, 'UTF8')`)
	require.Equal(t, http.StatusOK, p.get(t, "/teams").status)
	read()
	require.InDelta(t, 2, idle, 0.1, "a request does not move the end of the 30 days")

	cookie := map[string]string{"Cookie": "roomsensor=" + p.cookie(t)}
	require.Equal(t, http.StatusOK, e.stranger(t).send(t, http.MethodGet, "/teams", nil, cookie).status)
	p.post(t, "/sign-out", nil)
	require.Equal(t, http.StatusSeeOther, e.stranger(t).send(t, http.MethodGet, "/teams", nil, cookie).status)
	p.enter(t)
	e.exec(t, `UPDATE sessions SET expires_at = now() WHERE expires_at > now()`)
	require.Equal(t, "/sign-in?next=%2Fteams", p.get(t, "/teams").location())

	// An operator ends the sessions of a person, also if the person may sign in again.
	p.enter(t)
	e.exec(t, db.UserDisable, p.id)
	require.Equal(t, http.StatusSeeOther, p.get(t, "/teams").status)
	e.exec(t, db.UserEnable, p.id)
	require.Equal(t, http.StatusSeeOther, p.get(t, "/teams").status)
}

// TestPasswordFields checks that fields of passwords hide what is typed, and that password managers can fill them.
func TestPasswordFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.now = time.Now() // The database ends links by its own clock.
	p := e.signIn(t, e.team, roomsensor.Admin)
	link := p.invite(t, "kim@example.com", "viewer")
	for path, want := range map[string][]string{
		"/sign-in": {"current-password"}, "/account": {"current-password", "new-password"}, link: {"new-password"},
	} {
		reader := p
		if path != "/account" {
			reader = e.stranger(t)
		}
		var got []string
		reader.get(t, path).find("input").Each(func(_ int, input *goquery.Selection) {
			if name := input.AttrOr("name", ""); name == "password" || name == "current" {
				require.Equal(t, "password", input.AttrOr("type", ""), path)
				require.Empty(t, input.AttrOr("maxlength", "")+input.AttrOr("onpaste", ""), path)
				got = append(got, input.AttrOr("autocomplete", ""))
			}
		})
		require.Equal(t, want, got, path)
	}
}

// heldSignIns is a store that answers no sign-in until it is released, and then refuses each, so that no password is
// checked: many checks take longer than a request may on a busy machine.
type heldSignIns struct {
	*store.Store
	began    chan netip.Addr // addresses whose turn it is
	released chan struct{}
}

func (s *heldSignIns) CountSignIn(_ context.Context, a accounts.SignInAttempt) (time.Duration, error) {
	s.began <- a.Address
	<-s.released
	return time.Minute, nil
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
	require.Eventually(t, func() bool { return len(answers) == 1 }, proctest.Patience, 10*time.Millisecond)
	refused := <-answers
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "5", refused.header.Get("Retry-After"))
	<-held.began
	require.Empty(t, held.began)
	go signIn("198.51.100.1")
	require.Eventually(t, func() bool { return len(held.began) == 1 }, proctest.Patience, 10*time.Millisecond)
	require.Equal(t, "198.51.100.1", (<-held.began).String())
	release()
	for range 6 {
		require.Equal(t, http.StatusTooManyRequests, (<-answers).status)
	}
}
