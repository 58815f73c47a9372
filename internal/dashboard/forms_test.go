package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dashboard"
	"roomsensor/internal/roomsensor"
)

// TestRefusedForms checks that a form that is not valid says at the top of the page and in its title that nothing was
// saved, and that the first field with an error has the focus.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addDevice(t, e.team, "dev:1", "Dorm 1", 0)
	e.exec(t, `UPDATE devices SET metadata = '{"building": "main"}' WHERE id = $1`, device)
	e.exec(t, `INSERT INTO device_hardware (device_id, hardware_id) VALUES ($1, 'dev:1')`, device)
	p := e.signIn(t, e.team, roomsensor.Admin)
	path := "/devices/" + device.String()
	for _, test := range []struct {
		path, field string
		form        url.Values
	}{
		{path + "/name", "name", url.Values{"name": {strings.Repeat("x", 201)}}},
		{path + "/tags", "key", url.Values{"key": {"Gebäude"}, "value": {"x"}}},
		{path + "/tags", "key", url.Values{"key": {"Building"}, "value": {"x"}, "new": {"1"}}},
		{path + "/hardware", "hardware_id", url.Values{"hardware_id": {"dev:broken"}}},
		{"/settings", "name", url.Values{"name": {""}}},
		{"/settings/limits", "tag", url.Values{"tag": {"x"}}},
		{"/devices/new", "unit", url.Values{"unit": {"dev:x"}}},
		{"/assignments/start/" + device.String(), "label", url.Values{"type": {"place"}, "home_or_travel": {"home"}}},
		{"/members", "email", url.Values{"email": {"x"}, "role": {"viewer"}}},
	} {
		refused := p.post(t, e.path(test.path), test.form)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, test.path)
		require.Contains(t, refused.find(".notice.error").First().Text(), "Nothing was saved.", test.path)
		require.True(t, strings.HasPrefix(refused.find("title").Text(), "Not saved: "), test.path)
		focused := refused.find("[autofocus]")
		require.Equal(t, 1, focused.Length(), test.path)
		require.Equal(t, test.field, focused.AttrOr("name", ""), test.path)
		focused.ParentsFiltered("details").Each(func(_ int, closed *goquery.Selection) {
			_, open := closed.Attr("open")
			require.True(t, open, "%s: the field can be seen", test.path)
		})
	}
	saved, err := e.store.Device(t.Context(), e.team, device)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"building": "main"}, saved.Metadata, "another value does not replace a tag silently")
}

// TestAddressesOfForms checks that the address of every form leads to a page: after a refused form, browsers show it.
func TestAddressesOfForms(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	pages := map[string]bool{}
	for _, r := range dashboard.Routes() {
		pages[r.Path] = pages[r.Path] || r.Method == http.MethodGet
	}
	for _, r := range dashboard.Routes() {
		if r.Method != http.MethodPost || pages[r.Path] {
			continue
		}
		address := r.Fill(e.team.String(), uuid.NewString())
		answer := p.get(t, address)
		require.Equal(t, http.StatusSeeOther, answer.status, r.Path)
		require.True(t, strings.HasPrefix(address, answer.location()), "%s leads to %s", address, answer.location())
		require.NotEqual(t, http.StatusMethodNotAllowed, p.get(t, answer.location()).status, r.Path)
	}
}

// TestFormAfterSession checks that a form that a person sends after the session ended is not lost: after the sign-in, the
// browser that sent it can send it again. A secret is not kept.
func TestFormAfterSession(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addDevice(t, e.team, "dev:1", "Dorm 1", 0)
	p := e.signIn(t, e.team, roomsensor.Editor)
	path := e.path("/devices/" + device.String())
	e.exec(t, `DELETE FROM sessions`)
	ended := p.follow(t, p.post(t, path+"/name", url.Values{"name": {"Dorm <14>"}}))
	require.Contains(t, ended.text, "Your session ended, and nothing was saved. Sign in to send the form again.")
	require.Equal(t, path, ended.find("[name=next]").AttrOr("value", ""))

	form := url.Values{"email": {p.email}, "password": {secretPassword}, "next": {path}}
	kept := p.follow(t, p.post(t, "/sign-in", form))
	require.Contains(t, kept.text, "Not saved yet")
	require.Contains(t, kept.find("dl").Text(), "Dorm <14>")
	again := url.Values{}
	kept.find("form[action] input[type=hidden]").Each(func(_ int, field *goquery.Selection) {
		again.Set(field.AttrOr("name", ""), field.AttrOr("value", ""))
	})
	require.Equal(t, path+"/name", kept.find("section form").AttrOr("action", ""))
	require.Contains(t, p.follow(t, p.post(t, path+"/name", again)).text, "The name was changed.")
	require.Equal(t, "/", p.get(t, "/kept-form").location(), "it is kept once")

	e.exec(t, `DELETE FROM sessions`)
	lost := p.follow(t, p.post(t, "/account/password", url.Values{"old_password": {"x"}, "password": {"y"}}))
	require.Contains(t, lost.text, "Your session ended, and nothing was saved. Sign in and do it again.")
	require.Equal(t, "/", p.post(t, "/sign-in", url.Values{"email": {p.email}, "password": {secretPassword}}).location())

	e.exec(t, `DELETE FROM sessions`)
	p.post(t, "/account/name", url.Values{"name": {"Ana"}})
	kept = p.follow(t, p.post(t, "/sign-in", form))
	require.Equal(t, "/account/name", kept.find("section form").AttrOr("action", ""), "a form without a team")
}

// TestWordsOfPeople checks that pages understand and order words as people do: tags, cities, and names with numbers; and
// that prints say which team and which time they are of.
func TestWordsOfPeople(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, name := range []string{"Room 10", "room 9", "Room 2"} {
		device := e.addDevice(t, e.team, "dev:"+strings.Fields(name)[1], name, 0)
		e.exec(t, `UPDATE devices SET metadata = '{"building": "gym"}' WHERE id = $1`, device)
		e.addReading(t, device, 10*time.Minute, 600, 20)
	}
	p := e.signIn(t, e.team, roomsensor.Admin)
	exports := p.get(t, e.path("/export?count=1&preset=week&tags=building:+gym"))
	require.Contains(t, exports.text, "3 rows, about")
	require.Equal(t, "Room 2room 9Room 10", exports.find("#device option").Text())
	require.Contains(t, exports.find(".printed").Text(), "Team <&> · as of Sun 22 Nov 2026, 14:05 (UTC)")
	form := settingsForm()
	form.Set("time_zone", "new york")
	require.Equal(t, http.StatusSeeOther, p.post(t, e.path("/settings"), form).status)
	team, err := e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, "America/New_York", team.TimeZone.String())
}
