package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/secretscan"
)

// addSource creates a source on its page and returns its id and credential.
func (p *person) addSource(t *testing.T, name, format string) (id, key string) {
	t.Helper()
	created := p.post(t, p.env.path("/sources"), url.Values{"name": {name}, "format": {format}})
	require.Equal(t, http.StatusOK, created.status, created.text)
	address := created.find("#address").Text()
	require.True(t, strings.HasPrefix(address, "http://127.0.0.1:8081/sources/"), address)
	return address[strings.LastIndexByte(address, '/')+1:], created.find("#secret").Text()
}

// receive records a message as the newest one of a source, as a worker does.
func (e *env) receive(t *testing.T, sourceID, message string) {
	t.Helper()
	e.exec(t, `INSERT INTO source_state VALUES ($1, $2, $3, '')
		ON CONFLICT (source_id) DO UPDATE SET message = excluded.message`, sourceID, e.now.Add(-time.Minute), []byte(message))
}

func TestCreateSource(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A16.1")
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	require.Contains(t, p.get(t, e.path("/sources")).text, "Your team has no source")
	form := p.get(t, e.path("/sources/new"))
	require.Equal(t, 13, form.find("#format option").Length()-1)
	for _, c := range []struct{ name, format, want string }{
		{"", "tts", "Enter what sends here"},
		{"Hall", "morse", "Choose what sends here"},
	} {
		refused := p.post(t, e.path("/sources"), url.Values{"name": {c.name}, "format": {c.format}})
		require.Equal(t, http.StatusUnprocessableEntity, refused.status)
		require.Contains(t, refused.text, c.want)
	}

	id, key := p.addSource(t, "Hall <b>", "notehub")
	_, secret, ok := roomsensor.ParseKey(roomsensor.IngestKey, key)
	require.True(t, ok)
	taken := p.post(t, e.path("/sources"), url.Values{"name": {"Hall <b>"}, "format": {"tts"}})
	require.Equal(t, http.StatusUnprocessableEntity, taken.status)
	require.Contains(t, taken.text, "has a source with this name")
	keys, err := e.store.TeamIngestKeys(t.Context(), e.team)
	require.NoError(t, err)
	require.Len(t, keys, 1, "a refused form creates no key")
	require.Equal(t, id, keys[0].Source.ID.String())

	page := p.get(t, e.path("/sources/"+id))
	require.Equal(t, 1, page.find(`a[href="http://127.0.0.1:8080/docs/guides/notehub"]`).Length())
	require.Contains(t, page.text, "Waiting for the first message")
	require.Contains(t, page.text, "Open your project at Notehub")
	require.Equal(t, e.path("/sources/"+id), page.find("#arrival").AttrOr("data-arrival", ""))
	e.receive(t, id, "{}")
	e.exec(t, `INSERT INTO source_hours VALUES ($1, date_trunc('hour', now()), 3, 5, 2, 1)`, id)
	page = p.get(t, e.path("/sources/"+id))
	require.Empty(t, page.find("#arrival").AttrOr("data-arrival", ""))
	require.Contains(t, page.text, "3 messages. 5 measurements stored, 2 rejected, 1 ignored")
	list := p.get(t, e.path("/sources"))
	require.Equal(t, "Hall <b> notehub 1 min ago 3 5 2 1", strings.Join(strings.Fields(list.find("tbody").Text()), " "))
	for name, shown := range map[string]string{"the page": page.body, "the list": list.body, "the log": e.log.String()} {
		require.Empty(t, secretscan.Find([]byte(shown), map[string]string{"secret": secret}), name)
	}

	require.Contains(t, p.follow(t, p.post(t, e.path("/sources/"+id+"/state"), url.Values{"disabled": {"true"}})).text, "is disabled")
	require.Contains(t, p.follow(t, p.post(t, e.path("/sources/"+id+"/state"), url.Values{"disabled": {"false"}})).text, "takes messages again")
	for range 2 { // The form may be sent again.
		require.Contains(t, p.follow(t, p.post(t, e.path("/sources/"+id+"/delete"), nil)).text, "The source is deleted")
	}
	require.Equal(t, http.StatusNotFound, p.get(t, e.path("/sources/"+id)).status)

	mqtt := p.post(t, e.path("/sources"), url.Values{"name": {"Zigbee"}, "format": {"zigbee2mqtt"}})
	require.Contains(t, mqtt.text, "set Last seen to ISO_8601")
	require.Equal(t, 1, mqtt.find(`a[href$="/docs/guides/mqtt"]`).Length())
	for _, posting := range []string{`\b401\b`, `\?key=`, "Copy this credential", "Bearer"} { // 401 may be part of an id.
		require.NotRegexp(t, posting, mqtt.text)
	}
}

// TestSourceMapping leads from a message that its format does not fit to stored readings, with the buttons of the pages.
func TestSourceMapping(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A16.2", "A16.3")
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	id, _ := p.addSource(t, "Gateway", "roomsensor")
	message := fmt.Sprintf(`{"hardware_id":"room-1","readings":[{"measured_at":%q,"air":{"CO2":612}}]}`,
		roomsensor.FormatTime(e.now.Add(-2*time.Hour)))
	e.receive(t, id, message)
	e.addReject(t, e.team, 1, "", roomsensor.ReasonNotMapped, message)
	e.exec(t, `UPDATE rejected_uploads SET source_id = $1`, id)

	path := e.path("/sources/" + id)
	page := p.get(t, path)
	require.Contains(t, page.text, "not_mapped: No metric has a value")
	require.Contains(t, page.text, "1 reject of this source is kept")
	use := page.find(`button[name=use]`)
	require.Equal(t, "co2_ppm=air.CO2", use.AttrOr("value", ""))
	chosen := p.post(t, path+"/mapping", url.Values{"mapping": {""}, "use": {use.AttrOr("value", "")}})
	require.Equal(t, http.StatusOK, chosen.status, chosen.text)
	mapping := chosen.find("textarea").Text()
	require.Contains(t, mapping, `"path": "air.CO2"`)
	require.Contains(t, mapping, `"path": "temp_c"`, "the other metrics stay")
	require.Contains(t, chosen.text, "This mapping is not saved yet")
	require.Contains(t, chosen.find("tbody").Last().Text(), "612")
	require.Contains(t, chosen.text, "unknown_unit, room-1")
	require.Contains(t, p.get(t, path).text, "not_mapped", "a preview saves nothing")

	saved := p.follow(t, p.post(t, path+"/mapping", url.Values{"mapping": {mapping}, "save": {"yes"}}))
	require.Contains(t, saved.text, "The mapping is saved")
	require.Equal(t, mapping, saved.find("textarea").Text())
	replayed := p.post(t, e.path("/rejects/replay"), url.Values{"source": {id}})
	require.Contains(t, replayed.text, "Replay of Gateway")
	require.Contains(t, replayed.text, "unknown_unit (1 reject)")

	register := saved.find(`a[href*="/devices/new"]`).AttrOr("href", "")
	require.Equal(t, "whole", p.get(t, register).find("#sampling option[selected]").AttrOr("value", ""))
	require.Equal(t, http.StatusUnprocessableEntity,
		p.post(t, e.path("/devices/new"), url.Values{"unit": {"room-1"}, "sampling": {"median"}}).status)
	p.follow(t, p.post(t, e.path("/devices/new"), url.Values{"unit": {"room-1"}, "name": {"Hall"}, "sampling": {"mean"}}))
	replayed = p.post(t, e.path("/rejects/replay"), url.Values{"source": {id}})
	require.Contains(t, replayed.text, "stored in full")
	var co2 float32
	require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT co2_ppm FROM readings").Scan(&co2))
	require.InDelta(t, 612, co2, 0)
	device := p.get(t, path).find(`a[href*="/devices/"]`)
	require.Equal(t, "Hall", device.Text())
	require.Equal(t, http.StatusOK, p.get(t, device.AttrOr("href", "")).status)

	e.addReject(t, e.team, 2, "room-1", roomsensor.ReasonUnknownUnit, e.uploadOf("room-1"))
	ours := e.addReject(t, e.team, 3, "room-1", roomsensor.ReasonUnknownUnit, message)
	e.exec(t, `UPDATE rejected_uploads SET source_id = $1 WHERE id = $2`, id, ours)
	group := url.Values{}
	p.get(t, e.path("/rejects?source="+id)).find("main form[method=post] input").Each(func(_ int, field *goquery.Selection) {
		group.Set(field.AttrOr("name", ""), field.AttrOr("value", ""))
	})
	require.Contains(t, p.post(t, e.path("/rejects/replay"), group).text,
		"Replay of Gateway: unknown_unit, room-1 1 reject stored in full.", "not those of other sources")

	invalid := p.post(t, path+"/mapping", url.Values{"mapping": {`{"metric":{}}`}, "save": {"yes"}})
	require.Equal(t, http.StatusUnprocessableEntity, invalid.status)
	require.Contains(t, invalid.find("#mapping-error").Text(), "at byte")
	require.Contains(t, invalid.find("textarea").Text(), `{"metric":{}}`, "what was entered stays")
	require.Equal(t, http.StatusBadRequest,
		p.post(t, path+"/mapping", url.Values{"mapping": {""}, "use": {"co3=x"}}).status)
}

// TestRejectsOfSource filters the rejects by a source, and registers a unit with the sampling of its source.
func TestRejectsOfSource(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A16.3")
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	id, _ := p.addSource(t, "Home", "homeassistant")
	first := e.addReject(t, e.team, 1, "dev:1", roomsensor.ReasonUnknownUnit, "x")
	e.exec(t, `UPDATE rejected_uploads SET source_id = $1, hardware_id = NULL, unit = 'bedroom' WHERE id = $2`, id, first)
	e.addReject(t, e.team, 2, "dev:2", roomsensor.ReasonUnknownUnit, "y")
	page := p.get(t, e.path("/rejects?source="+id))
	require.Contains(t, page.text, "Only those of the source Home")
	require.Equal(t, 1, page.find("tbody tr").Length())
	list := p.get(t, page.find("tbody th a").AttrOr("href", ""))
	require.Equal(t, 1, list.find("tbody tr").Length())
	require.Contains(t, list.text, "bedroom")
	register := page.find(`a[href*="/devices/new"]`).AttrOr("href", "")
	require.Equal(t, "mean", p.get(t, register).find("#sampling option[selected]").AttrOr("value", ""))
	require.Equal(t, http.StatusNotFound, p.get(t, e.path("/rejects?source="+uuid.NewString())).status)
}

// TestSourcesOfOtherTeams checks that sources of other teams look as if they did not exist, and who may see sources.
func TestSourcesOfOtherTeams(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	other := e.addTeam(t, "Other")
	theirs, err := e.store.CreateSource(t.Context(), roomsensor.Source{TeamID: other, Name: "Theirs", Format: "tts"}, nil)
	require.NoError(t, err)
	path := e.path("/sources/" + theirs.ID.String())
	require.Equal(t, http.StatusNotFound, p.get(t, path).status)
	for _, action := range []string{"/mapping", "/state", "/delete"} {
		require.Equal(t, http.StatusNotFound, p.post(t, path+action, url.Values{"save": {"yes"}}).status, action)
	}
	require.Equal(t, http.StatusNotFound, p.post(t, e.path("/rejects/replay"), url.Values{"source": {theirs.ID.String()}}).status)
	editor := e.signIn(t, e.team, roomsensor.Editor)
	require.Equal(t, http.StatusForbidden, editor.get(t, e.path("/sources")).status)
	require.Equal(t, http.StatusForbidden, editor.post(t, e.path("/sources"), url.Values{}).status)
}
