package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// share returns the path of the link that a form makes.
func (p *person) share(t *testing.T, form url.Values) string {
	t.Helper()
	if !form.Has("days") {
		form.Set("days", "7")
	}
	answer := p.post(t, p.env.path("/shares"), form)
	require.Equal(t, http.StatusOK, answer.status, answer.text)
	path, ok := strings.CutPrefix(answer.find("#link").Text(), "http://127.0.0.1:8082")
	require.True(t, ok, answer.text)
	return path
}

// sharesEnv returns an environment in which the clock is that of the database, with two rooms. An athlete slept in the
// first one, in the night that it returns.
func sharesEnv(t *testing.T) (e *env, rooms []uuid.UUID, athlete uuid.UUID, night string) {
	t.Helper()
	e = newEnv(t)
	e.now = time.Now().Truncate(roomsensor.BucketLength) // The database ends links by its own clock.
	rooms = []uuid.UUID{e.addNamedDevice(t, "dev:1", "Dorm 1", nil), e.addNamedDevice(t, "dev:2", "Dorm 2", nil)}
	begin := e.now.UTC().AddDate(0, 0, -2).Truncate(24 * time.Hour)
	athlete = e.addAssignment(t, rooms[0], "Ana Ruiz", begin.AddDate(0, 0, -1))
	e.addAssignment(t, rooms[1], "Kit", begin.AddDate(0, 0, -1))
	e.exec(t, `UPDATE assignments SET type = 'athlete'`)
	for _, room := range rooms {
		e.addReadings(t, room, time.Hour)
	}
	return e, rooms, athlete, begin.Format(time.DateOnly)
}

// TestShares checks that each kind of link shows what it is for and nothing else to somebody without an account, and when
// it ends.
func TestShares(t *testing.T) {
	t.Parallel()
	e, rooms, athlete, night := sharesEnv(t)
	editor, guest := e.signIn(t, e.team, roomsensor.Editor), e.stranger(t)
	require.Equal(t, http.StatusSeeOther, editor.post(t, devicePath(e, rooms[0], "/notes"), note("Secret", night+"T23:00")).status)
	require.Equal(t, http.StatusSeeOther, editor.post(t, e.path("/people/"+athlete.String()+"/notes"), note("Ill", night+"T23:00")).status)

	links := map[string]string{}
	for kind, c := range map[string]struct {
		form        url.Values
		shows, what string
	}{
		"night":  {url.Values{"night": {night}}, "Ana Ruiz", "the night of "},
		"person": {url.Values{"person": {athlete.String()}}, "Ana Ruiz had bad air", "the newest nights of Ana Ruiz"},
		"rooms":  {url.Values{"device": {rooms[1].String()}}, "Dorm 2", "1 room as they are now"},
	} {
		page := editor.get(t, e.path("/shares?"+c.form.Encode()))
		require.Equal(t, http.StatusOK, page.status, kind)
		links[kind] = editor.share(t, c.form)
		require.Contains(t, editor.get(t, e.path("/shares")).find("tbody").Text(), c.what)
		shared := guest.get(t, links[kind])
		require.Equal(t, http.StatusOK, shared.status, kind)
		require.Contains(t, shared.find("main").Text(), c.shows)
		require.Contains(t, shared.find("header").Text(), "Team <&>")
		require.Zero(t, shared.find("main a, form, nav").Length(), kind)
		for _, hidden := range []string{"Secret", "Ill", editor.email} {
			require.NotContains(t, shared.text, hidden, kind)
		}
		require.Equal(t, shared.find("main").Text(), guest.get(t, links[kind]+"?until=2026-01-01&night=2026-01-01&sort=x").find("main").Text())
		require.Equal(t, http.StatusMethodNotAllowed, guest.post(t, links[kind], nil).status)
	}
	require.NotContains(t, guest.get(t, links["rooms"]).text, "Dorm 1")
	require.NotContains(t, guest.get(t, links["person"]).text, "Kit")
	for _, path := range []string{"", "/nights", "/people/" + athlete.String(), "/devices/" + rooms[1].String(), "/shares"} {
		require.Contains(t, guest.get(t, e.path(path)).location(), "/sign-in?", "the links open no session")
	}

	ended := func(link, why string) {
		t.Helper()
		got := guest.get(t, link)
		require.Equal(t, http.StatusNotFound, got.status, why)
		require.Contains(t, got.text, "This link does not work any more", why)
	}
	ended("/shared/"+strings.Repeat("A", 26), "made up")
	e.exec(t, `UPDATE shared_links SET expires_at = now() WHERE night IS NOT NULL`)
	ended(links["night"], "expired")
	revoke, _ := editor.get(t, e.path("/shares")).find("tbody form").First().Attr("action")
	for range 2 { // The second one is the same form, sent again.
		require.Equal(t, "The link is revoked.", editor.follow(t, editor.post(t, revoke, nil)).find(".notice").Text())
	}
	require.Len(t, editor.get(t, e.path("/shares")).find("tbody tr").Nodes, 1)
	still := links["rooms"]
	if guest.get(t, still).status != http.StatusOK {
		still = links["person"]
	}
	e.exec(t, `UPDATE memberships SET role = 'viewer' WHERE user_id = $1`, editor.id)
	ended(still, "its maker may not share any more")
	e.exec(t, `UPDATE memberships SET role = 'editor' WHERE user_id = $1`, editor.id)
	require.Equal(t, http.StatusOK, guest.get(t, still).status)
	e.exec(t, `UPDATE users SET disabled_at = now() WHERE id = $1`, editor.id)
	ended(still, "its maker is disabled")
	var recorded int
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE object_kind = 'shared_link'`).Scan(&recorded))
	require.Equal(t, 4, recorded, "three links, one of them revoked")
}

// TestShareRefusals checks who may make links, and for what.
func TestShareRefusals(t *testing.T) {
	t.Parallel()
	e, rooms, athlete, night := sharesEnv(t)
	editor, viewer := e.signIn(t, e.team, roomsensor.Editor), e.signIn(t, e.team, roomsensor.Viewer)
	other := e.addTeam(t, "Other")
	outsider := e.signIn(t, other, roomsensor.Admin)
	foreign := "/teams/" + other.String() + "/shares"
	days := func(name string, values ...string) url.Values { return url.Values{"days": {"7"}, name: values} }

	require.Equal(t, http.StatusForbidden, viewer.post(t, e.path("/shares"), days("night", night)).status)
	require.Zero(t, viewer.get(t, e.path("/nights?night="+night)).find("a[href*=shares]").Length())
	require.NotZero(t, editor.get(t, e.path("/nights?night="+night)).find("a[href*=shares]").Length())
	require.Equal(t, http.StatusNotFound, outsider.post(t, foreign, days("person", athlete.String())).status)
	require.Contains(t, outsider.post(t, foreign, days("device", rooms[0].String())).text, "Choose 1 to 30 rooms.")
	for _, form := range []url.Values{days("night", "soon"), days("person", "x"), days("person", uuid.NewString())} {
		require.Equal(t, http.StatusNotFound, editor.post(t, e.path("/shares"), form).status)
	}
	e.exec(t, `UPDATE assignments SET type = 'place' WHERE id = $1`, athlete)
	require.Equal(t, http.StatusNotFound, editor.post(t, e.path("/shares"), days("person", athlete.String())).status)
	refused := editor.post(t, e.path("/shares"), url.Values{"days": {"8"}, "device": {rooms[0].String()}})
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Equal(t, "Choose for how long the link works.", refused.find("#days-error").Text())
	require.Equal(t, 1, refused.find("input[checked]").Length())

	link := editor.share(t, days("device", rooms[0].String()))
	id := ""
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT id::text FROM shared_links`).Scan(&id))
	require.Equal(t, http.StatusNotFound, outsider.post(t, foreign+"/"+id+"/revoke", nil).status)
	require.Equal(t, http.StatusOK, e.stranger(t).get(t, link).status)
	e.exec(t, `ALTER TABLE shared_links DISABLE TRIGGER audit`)
	e.exec(t, `INSERT INTO shared_links (token_sha256, team_id, made_by, night, expires_at)
		SELECT sha256(n::text::bytea), $1, $2, now(), now() + interval '1 hour' FROM generate_series(1, 99) n`, e.team, editor.id)
	e.exec(t, `ALTER TABLE shared_links ENABLE TRIGGER audit`)
	full := editor.post(t, e.path("/shares"), days("night", night))
	require.Equal(t, http.StatusUnprocessableEntity, full.status)
	require.Contains(t, full.text, fmt.Sprintf("The team has %d shared links", accounts.MaxShares))
	e.exec(t, `UPDATE memberships SET role = 'viewer' WHERE user_id = $1`, editor.id)
	e.signIn(t, e.team, roomsensor.Editor).share(t, days("night", night)) // Those of the other editor have ended.
}
