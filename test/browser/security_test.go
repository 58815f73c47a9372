package browser_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// sessionCookie is the name of the cookie without TLS.
const sessionCookie = "roomsensor"

// cookies returns the cookies of the tab by name.
func (p *tab) cookies(t *testing.T) map[string]*network.Cookie {
	t.Helper()
	got, err := chromedp.Call(p.within(t), network.GetCookies, network.GetCookiesParams{})
	require.NoError(t, err)
	cookies := map[string]*network.Cookie{}
	for _, cookie := range got.Cookies {
		cookies[cookie.Name] = cookie
	}
	return cookies
}

// setCookie sets the session cookie of the tab.
func (p *tab) setCookie(t *testing.T, address, value string) {
	t.Helper()
	_, err := chromedp.Call(p.within(t), network.SetCookie, network.SetCookieParams{
		Name: sessionCookie, Value: value, URL: address,
	})
	require.NoError(t, err)
}

// testSessionFixation checks that a session that others know before the sign-in is worth nothing after it, and that a
// session is worth nothing after the sign-out.
func (s *site) testSessionFixation(t *testing.T) {
	t.Helper()
	const known = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	victim := newTab(t, desktop)
	victim.setCookie(t, s.url, known)
	s.signIn(t, victim, s.person(t, s.team, roomsensor.Viewer))
	session := victim.cookies(t)[sessionCookie]
	require.NotEqual(t, known, session.Value)
	require.True(t, session.HTTPOnly)
	require.Equal(t, network.CookieSameSiteLax, session.SameSite)

	attacker := newTab(t, desktop)
	attacker.setCookie(t, s.url, known)
	attacker.open(t, s.url+"/teams")
	require.Contains(t, attacker.address(t), "/sign-in")

	victim.open(t, s.url+"/teams")
	victim.signOut(t)
	attacker.setCookie(t, s.url, session.Value)
	attacker.open(t, s.url+"/teams")
	require.Contains(t, attacker.address(t), "/sign-in")
}

// signOut signs the person out with the keyboard.
func (p *tab) signOut(t *testing.T) {
	t.Helper()
	p.tabTo(t, "Robin Vale")
	p.press(t, "\r")
	p.enter(t, "Sign out")
	require.Contains(t, p.address(t), "/sign-in")
}

// otherSite serves a page of an attacker. Its host differs from that of the dashboard, and so does its site.
func otherSite(t *testing.T, content string) string {
	t.Helper()
	return strings.Replace(servePage(t, content), "127.0.0.1", "localhost", 1)
}

// testOtherSite checks that a form on a page of another site changes nothing, nor one on another port of the same host.
func (s *site) testOtherSite(t *testing.T) {
	t.Helper()
	p := s.signedIn(t, desktop, roomsensor.Viewer)
	form := fmt.Sprintf(`<form method="post" action="%s/sign-out"><button autofocus>Win</button></form>`, s.url)
	for _, address := range []string{otherSite(t, form), servePage(t, form)} {
		p.open(t, address)
		p.enter(t, "Win")
		require.Equal(t, s.url+"/sign-out", p.address(t))
		require.Contains(t, p.text(t), "another site")
		p.open(t, s.url+"/teams")
		require.NotContains(t, p.address(t), "/sign-in", "the person is still signed in")
	}
}

// testOpenRedirect checks that the sign-in leads to no other site.
func (s *site) testOpenRedirect(t *testing.T) {
	t.Helper()
	who := s.person(t, s.team, roomsensor.Viewer)
	here, err := url.Parse(s.url)
	require.NoError(t, err)
	for _, next := range []string{
		"//localhost:1/", `/\localhost:1/`, "http://localhost:1/", "/%09/localhost:1/", "javascript:alert(1)", "/\t/localhost:1/",
	} {
		p := newTab(t, desktop)
		p.open(t, s.url+"/sign-in?next="+url.QueryEscape(next))
		p.fillFocused(t, who.email)
		p.fill(t, "Password", secretPassword)
		p.enter(t, "Sign in")
		at, err := url.Parse(p.address(t))
		require.NoError(t, err)
		require.Equal(t, here.Host, at.Host, next)
	}
}

// testFrame checks that no other site can show the dashboard in a frame.
func (s *site) testFrame(t *testing.T) {
	t.Helper()
	p := s.signedIn(t, desktop, roomsensor.Viewer)
	response := p.open(t, s.url+"/teams")
	require.Contains(t, fmt.Sprint(response.Headers["Content-Security-Policy"]), "frame-ancestors 'none'")
	p.open(t, otherSite(t, fmt.Sprintf(`<h1>Win</h1><iframe src="%s/teams"></iframe>`, s.url)))
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(strings.Join(p.messages, "\n"), "frame-ancestors")
	}, patience, patience/1000)
}

// testBack checks that the back button and another tab show nothing of the team after the sign-out.
func (s *site) testBack(t *testing.T) {
	t.Helper()
	p := s.signedIn(t, desktop, roomsensor.Viewer)
	p.open(t, s.url+"/teams")
	require.Contains(t, p.text(t), "Riverside Athletics")
	other := p.another(t)
	other.open(t, s.url+"/teams")
	require.Contains(t, other.text(t), "Riverside Athletics")
	p.signOut(t)
	require.Eventually(t, func() bool { return strings.Contains(other.address(t), "/sign-in") }, patience, patience/1000)
	require.NotContains(t, other.text(t), "Riverside Athletics")
	p.do(t, chromedp.NavigateBack())
	require.NotContains(t, p.text(t), "Riverside Athletics")
	require.Contains(t, p.address(t), "/sign-in")
}

// markup does three things if a page does not escape it: it adds an element, it runs a script, and it requests a file.
const markup = `"'><b data-planted>x</b><img src=/planted onerror="window.planted=1"><script>window.planted=1</script>{{.}}`

// planted is what the markup did to the page.
const planted = `document.querySelectorAll('[data-planted], [src="/planted"]').length + (window.planted || 0)`

// plant has a statement for every text that people, units, operators or plain SQL can store. v has the team, the person
// and the markup.
var plant = []string{
	`UPDATE users SET display_name = v.markup FROM v WHERE id = v.person`,
	`UPDATE teams SET name = v.markup FROM v WHERE id = v.team`,
	`INSERT INTO devices (team_id, hardware_id, display_name, metadata)
		SELECT team, 'dev:4711', markup, jsonb_build_object(markup, markup) FROM v`,
	`UPDATE device_state SET firmware_version = markup, last_seen_at = now() FROM v, devices WHERE id = device_id AND team_id = team`,
	`INSERT INTO device_hardware (device_id, hardware_id, installed_at)
		SELECT id, hardware_id, now() - interval '9 days' FROM devices, v WHERE team_id = v.team`,
	`INSERT INTO assignments (device_id, type, label, external_ref, started_at)
		SELECT id, 'place', markup, concat(markup), now() - interval '9 days' FROM devices, v WHERE team_id = team`,
	`INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c)
		SELECT id, bucket, bucket + interval '1 minute', 900, 21 FROM v JOIN devices ON team_id = team,
			generate_series(date_bin('5 minutes', now() - interval '2 days', 'epoch'), now(), interval '5 minutes') bucket`,
	`INSERT INTO api_keys (key_id, team_id, secret_sha256, label)
		SELECT 'plantedplantedab', team, sha256(convert_to(markup, 'UTF8')), markup FROM v`,
	`INSERT INTO ingest_keys (key_id, team_id, secret_sha256, label)
		SELECT 'plantedplantedab', team, sha256(convert_to(markup, 'UTF8')), markup FROM v`,
	`INSERT INTO rejected_uploads (received_at, team_id, unit, reason, detail, payload, stream_sequence)
		SELECT now(), team, markup, 'unknown_unit', markup, convert_to(markup, 'UTF8'), 1 FROM v`,
	`INSERT INTO sources (team_id, name, format) SELECT team, markup, 'roomsensor' FROM v`,
	`INSERT INTO source_state (source_id, last_received_at, message, precision)
		SELECT s.id, now(), convert_to(json_build_object('hardware_id', markup, '<' || markup, '1')::text, 'UTF8'), ''
		FROM v JOIN sources s ON s.team_id = v.team`,
}

// testMarkup plants markup in every text of a team, and looks at every page.
func (s *site) testMarkup(t *testing.T) {
	t.Helper()
	team := uuid.New()
	s.exec(t, `INSERT INTO teams (id, name) VALUES ($1, 'Planted')`, team)
	who := s.person(t, team, roomsensor.Admin)
	for _, statement := range plant {
		s.exec(t, `WITH v AS (SELECT $1::uuid AS team, $2::uuid AS person, $3::text AS markup) `+statement, team, who.id, markup)
	}
	p := newTab(t, desktop)
	s.signIn(t, p, who)
	shown := 0
	s.crawl(t, p, s.url+"/teams/"+team.String()+"/settings", func(kind string) {
		p.keep(t, "planted-"+kind)
		p.requireQuiet(t)
		require.Zero(t, evaluate[int](t, p, planted), kind)
		shown += strings.Count(p.text(t), "data-planted")
	})
	require.NotZero(t, shown, "the markup is shown as text")

	// The test itself would notice.
	p.open(t, servePage(t, strings.Replace(frame, "%s", markup, 1)))
	require.NotZero(t, evaluate[int](t, p, planted))
}
