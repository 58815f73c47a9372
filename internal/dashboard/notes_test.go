package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// notes returns the notes of a page.
func notes(p *page) []string { return texts(p.find("#notes li > p")) }

// note returns the fields of a form.
func note(text, at string) url.Values { return url.Values{"text": {text}, "note_at": {at}} }

// TestDeviceNotes checks the notes of a device: who may add and delete them, and where the page shows them.
func TestDeviceNotes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin' WHERE id = $1`, e.team)
	device := e.installDevice(t, e.team, "dev:1")
	e.addReadings(t, device, time.Hour)
	editor := e.signIn(t, e.team, roomsensor.Editor)
	form := devicePath(e, device, "/notes")

	saved := editor.post(t, form, note(" Window <repaired>\r\nby Ana ", ""))
	require.Equal(t, devicePath(e, device, ""), saved.location())
	p := editor.follow(t, saved)
	require.Equal(t, "The note is saved.", p.find(".notice").Text())
	require.Equal(t, []string{"Sun 22 Nov, 15:05, by " + editor.email, "Window <repaired> by Ana"}, notes(p))
	require.Equal(t, "1 Window <repaired> by Ana", texts(p.find(".co2_ppm .chart-mark-label"))[0])
	require.Equal(t, 1, p.find(".co2_ppm .chart-night").Length())
	require.Zero(t, editor.get(t, devicePath(e, device, "?range=90d")).find(".chart-night").Length())
	require.Contains(t, p.find("#chart-co2_ppm-desc").Text(), "Note 1 at Sun 22 Nov, 15:05: Window <repaired>")
	editor.post(t, form, note("Window <repaired>\r\nby Ana", "2026-11-22T15:05"))
	require.Len(t, notes(editor.get(t, devicePath(e, device, ""))), 2, "the same note twice is one")

	t.Run("a note of another time is shown", func(t *testing.T) {
		saved := editor.post(t, form+"?range=7d", note("Filter", "2026-10-25T12:00"))
		require.Equal(t, devicePath(e, device, "?from=2026-10-24T12:00&to=2026-10-26T12:00"), saved.location())
		require.Equal(t, []string{"Sun 25 Oct, 12:00, by " + editor.email, "Filter"}, notes(editor.follow(t, saved)))
	})
	t.Run("a refused form", func(t *testing.T) {
		for field, c := range map[string]struct {
			fields  url.Values
			message string
		}{
			"text":    {note(strings.Repeat("é", 501), ""), "The note has 501 characters; at most 500 are allowed."},
			"note_at": {note("Kept", "2026-11-22T15:06"), "This time is in the future"},
		} {
			p := editor.post(t, form+"?range=7d", c.fields)
			require.Equal(t, http.StatusUnprocessableEntity, p.status)
			require.Contains(t, p.find("#"+field+"-error").Text(), c.message)
			require.Contains(t, p.find(".notice.error").Text(), "Nothing was saved.")
			require.Equal(t, c.fields.Get("text"), strings.TrimSpace(p.find("textarea#text").Text()))
			require.Equal(t, "7 days", p.find(".tabs [aria-current]").Text())
		}
	})
	t.Run("too many notes", func(t *testing.T) {
		full := e.addTeam(t, "Full")
		e.addMember(t, full, editor.id, roomsensor.Editor)
		room := e.installDevice(t, full, "dev:9")
		e.exec(t, `ALTER TABLE notes DISABLE TRIGGER audit`)
		e.exec(t, `INSERT INTO notes (team_id, device_id, at, text) SELECT $1, $2, $3, n::text FROM generate_series(1, 10000) n`, full, room, e.now)
		e.exec(t, `ALTER TABLE notes ENABLE TRIGGER audit`)
		path := "/teams/" + full.String() + "/devices/" + room.String()
		require.Contains(t, editor.post(t, path+"/notes", note("x", "")).find("#text-error").Text(),
			"The team has 10000 notes, the most that it may have. Delete old ones first.")
		p := editor.get(t, path)
		require.Len(t, notes(p), 200)
		require.Contains(t, p.find("#notes").Text(), "Only the newest 100 are shown.")
	})
	t.Run("a viewer reads", func(t *testing.T) {
		p := e.signIn(t, e.team, roomsensor.Viewer).get(t, devicePath(e, device, ""))
		require.Len(t, notes(p), 2)
		require.Zero(t, p.find("#notes form").Length())
	})
	t.Run("what belongs to another team does not exist", func(t *testing.T) {
		other := e.addTeam(t, "Other")
		outsider := e.signIn(t, other, roomsensor.Admin)
		path := "/teams/" + other.String() + "/devices/"
		require.Equal(t, http.StatusNotFound, outsider.post(t, path+device.String()+"/notes", note("x", "")).status)
		address, _ := editor.get(t, devicePath(e, device, "")).find("#notes li form").Attr("action")
		id := strings.Split(address, "/notes/")[1]
		own := e.installDevice(t, other, "dev:2")
		require.Equal(t, http.StatusNotFound, outsider.post(t, path+own.String()+"/notes/"+id, nil).status)
	})
	t.Run("delete", func(t *testing.T) {
		address, _ := editor.get(t, devicePath(e, device, "?range=7d")).find("#notes li form").Attr("action")
		for range 2 { // The second one is the same form, sent again.
			deleted := editor.post(t, address, nil)
			require.Equal(t, devicePath(e, device, "?range=7d"), deleted.location())
			p := editor.follow(t, deleted)
			require.Equal(t, "The note is deleted.", p.find(".notice").Text())
			require.Empty(t, notes(p))
		}
		entries, err := e.store.TeamAudit(t.Context(), e.team, roomsensor.AuditQuery{Object: device.String(), Limit: 1})
		require.NoError(t, err)
		require.Equal(t, "note", entries[0].ObjectKind)
		require.Contains(t, string(entries[0].Before), "Window <repaired>")
	})
}

// TestPersonNotes checks that a note about a person is on the page of the person, whichever assignment names the person
// there, and with the room and the night in which the person was at that time.
func TestPersonNotes(t *testing.T) {
	t.Parallel()
	e, dorm12, dorm14 := movesEnv(t)
	editor := e.signIn(t, e.team, roomsensor.Editor)
	var first, second uuid.UUID // assignments of Maya
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT id FROM assignments WHERE label = 'Maya Okafor'`).Scan(&first))
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT id FROM assignments WHERE label = ' maya okafor'`).Scan(&second))
	person := func(id uuid.UUID) string { return e.path("/people/" + id.String()) }
	require.Equal(t, person(second), editor.post(t, person(second)+"/notes", note("Ill", "2026-11-19T23:00")).location())
	require.Equal(t, http.StatusSeeOther, editor.post(t, devicePath(e, dorm12, "/notes"), note("Window open", "2026-11-19T22:30")).status)

	want := []string{"Thu 19 Nov, 23:00, by " + editor.email, "Ill"}
	require.Equal(t, want, notes(editor.get(t, person(first))))
	require.Equal(t, want, notes(editor.get(t, person(second))))
	night := "?from=2026-11-19T22:00&to=2026-11-20T07:00"
	room := editor.get(t, devicePath(e, dorm12, night))
	require.Equal(t, []string{"1 Window open", "2 maya okafor: Ill"}, texts(room.find(".co2_ppm .chart-mark-label")))
	require.Contains(t, notes(room)[2], ", about maya okafor, by ")
	require.Empty(t, notes(editor.get(t, devicePath(e, dorm14, night))), "the person was elsewhere")
	p := editor.get(t, e.path("/nights?night=2026-11-19"))
	require.Equal(t, []string{"Note, Thu 19 Nov, 22:30: Window open", "Note, Thu 19 Nov, 23:00, about maya okafor: Ill"},
		texts(p.find("li:contains('Maya Okafor') .note")))
	require.Equal(t, 2, p.find(".note").Length(), "not with other rooms")

	old := editor.post(t, person(first)+"/notes", note("Arrived", "2026-10-01T03:00"))
	require.Equal(t, person(first)+"?until=2026-10-01", old.location())
	require.Equal(t, "Arrived", notes(editor.follow(t, old))[1])
	refused := editor.post(t, person(first)+"/notes?until=2026-10-01", note("", ""))
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.find("#text-error").Text(), "The note must not be empty.")
	address, _ := editor.get(t, person(first)).find("#notes li form").Attr("action")
	require.Equal(t, person(first), editor.post(t, address, nil).location())
	require.Empty(t, notes(editor.get(t, person(first))))

	other := e.addTeam(t, "Other")
	outsider := e.signIn(t, other, roomsensor.Admin)
	foreign := "/teams/" + other.String() + "/people/" + first.String() + "/notes"
	require.Equal(t, http.StatusNotFound, outsider.post(t, foreign, note("x", "")).status)
	e.exec(t, `UPDATE assignments SET type = 'place' WHERE id = $1`, first)
	require.Equal(t, http.StatusNotFound, editor.post(t, person(first)+"/notes", note("x", "")).status, "a place is not a person")
}
