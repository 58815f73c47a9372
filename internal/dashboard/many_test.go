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

// many is the page on which an editor changes many devices.
type many struct {
	*env

	editor *person
}

// check sends a table without having seen what it changes.
func (m *many) check(t *testing.T, table string) *page {
	t.Helper()
	return m.editor.post(t, m.path("/devices/many"), url.Values{"table": {table}})
}

// save sends a table again whose preview is shown.
func (m *many) save(t *testing.T, shown *page) *page {
	t.Helper()
	token, ok := shown.find("button[name=confirm]").Attr("value")
	require.True(t, ok, shown.text)
	return m.editor.post(t, m.path("/devices/many"), url.Values{
		"table": {shown.find("textarea").Text()}, "confirm": {token},
	})
}

// open returns the label of the open assignment of a device and when it began, or nothing.
func (m *many) open(t *testing.T, device uuid.UUID) (label string, since time.Time) {
	t.Helper()
	d, err := m.store.Device(t.Context(), m.team, device)
	require.NoError(t, err)
	if d.ActiveAssignment == nil {
		return "", since
	}
	return d.ActiveAssignment.Label, d.ActiveAssignment.StartedAt
}

func newMany(t *testing.T) *many {
	t.Helper()
	e := newEnv(t)
	return &many{e, e.signIn(t, e.team, roomsensor.Editor)}
}

// TestChangeMany changes names, tags, persons and places from a table, which it shows before it saves all or nothing.
func TestChangeMany(t *testing.T) {
	t.Parallel()
	m := newMany(t)
	m.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin'`)
	a := m.addNamedDevice(t, "dev:1", "Dorm 1", map[string]string{"building": "main", "old": "=1+1"})
	b := m.addNamedDevice(t, "dev:2", "Dorm 2", nil)
	hall := m.addNamedDevice(t, "dev:3", "Hall; left", nil)
	began := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	m.start(t, athlete(a, "Ana", began))
	m.start(t, athlete(b, "Bea", began))
	require.Equal(t, 1, m.editor.get(t, m.path("")).find(`a[href="`+m.path("/devices/many")+`"]`).Length())

	present := m.editor.get(t, m.path("/devices/many")).find("textarea").Text()
	require.Equal(t, "hardware_id,new name,tag:building,tag:old,person,place,since\ndev:1,Dorm 1,main,'=1+1,Ana,,\n"+
		"dev:2,Dorm 2,,,Bea,,\ndev:3,Hall; left,,,,,\n", present)
	require.Contains(t, m.check(t, strings.ReplaceAll(present, "\n", "\r\n")).text, "Nothing changes")
	german := m.editor.send(t, http.MethodGet, m.path("/devices/many.csv"), nil, map[string]string{"Accept-Language": "de-DE"})
	require.True(t, strings.HasPrefix(german.body, "\ufeffhardware_id;new name;"))
	require.Contains(t, german.body, `dev:3;"Hall; left"`)
	require.Contains(t, m.check(t, german.body).text, "Nothing changes")

	table := "name\tnew name\ttag:building\ttag:old\tperson\tplace\tsince\n" +
		"Dorm 1\t\tannex\t-\tBea\t\t2026-11-20 21:00\n" +
		"Dorm 2\tDorm <2>\tannex\t\tana\t\t2026-11-20T21:00\n\n" +
		"Hall; left\t\t\t\t\tHall\t2026-11-20\n"
	shown := m.check(t, table)
	require.Equal(t, http.StatusOK, shown.status, shown.text)
	require.Equal(t, "This will change 3 devices", shown.find("h1").Text())
	require.Equal(t, []string{
		"Dorm 1 2 Tag building main annex", "Dorm 1 2 Tag old =1+1 none",
		"Dorm 1 2 Person Ana since Sun 1 Nov 2026, 09:00 Bea since Fri 20 Nov 2026, 21:00; leaves Dorm 2",
		"Dorm 2 3 Name Dorm 2 Dorm <2>", "Dorm 2 3 Tag building none annex",
		"Dorm 2 3 Person Bea since Sun 1 Nov 2026, 09:00 ana since Fri 20 Nov 2026, 21:00; leaves Dorm 1",
		"Hall; left 5 Place none Hall since Fri 20 Nov 2026, 00:00",
	}, rows(shown.find("tbody tr")))
	require.Contains(t, shown.text, "2 nights move from Ana to Bea.")
	label, _ := m.open(t, a)
	require.Equal(t, "Ana", label, "a preview changes nothing")

	require.Contains(t, m.editor.follow(t, m.save(t, shown)).text, "Changed 3 devices.")
	label, since := m.open(t, a)
	require.Equal(t, "Bea", label)
	require.Equal(t, time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC), since)
	label, _ = m.open(t, b)
	require.Equal(t, "ana", label)
	label, _ = m.open(t, hall)
	require.Equal(t, "Hall", label)
	changed, err := m.store.Device(t.Context(), m.team, b)
	require.NoError(t, err)
	require.Equal(t, "Dorm <2>", *changed.DisplayName)
	require.Equal(t, map[string]string{"building": "annex"}, changed.Metadata)
	entries, err := m.store.TeamAudit(t.Context(), m.team, roomsensor.AuditQuery{Object: b.String(), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, m.editor.email, entries[0].Actor.Name)

	again := m.save(t, shown)
	require.Equal(t, http.StatusUnprocessableEntity, again.status)
	require.Contains(t, again.text, "Line 3: This team has no device “Dorm 2”.")
	require.Contains(t, m.check(t, strings.Replace(table, "Dorm 2", "Dorm <2>", 1)).text, "Nothing changes")

	end := m.check(t, "hardware_id;place;tags\n3;-;\"wing=b, floor=2\"\ndev:1;;wing=a")
	require.Equal(t, http.StatusSeeOther, m.save(t, end).status)
	label, _ = m.open(t, hall)
	require.Empty(t, label)
}

// TestChangeManyMeanwhile checks that the preview appears again if somebody changed what it showed.
func TestChangeManyMeanwhile(t *testing.T) {
	t.Parallel()
	m := newMany(t)
	device := m.addNamedDevice(t, "dev:1", "Dorm 1", nil)
	table := "hardware_id,new name,person\ndev:1,Dorm A,Ana\n"
	shown := m.check(t, table)
	m.exec(t, `UPDATE devices SET display_name = 'Attic' WHERE id = $1`, device)
	again := m.save(t, shown)
	require.Equal(t, http.StatusOK, again.status)
	require.Contains(t, again.text, "A device changed after you checked the table, so that nothing was saved.")
	require.Contains(t, again.text, "Attic")
	m.addAssignment(t, device, "Store", m.now.Add(-time.Hour))
	again = m.save(t, again)
	require.Contains(t, again.text, "A device changed")
	require.Contains(t, again.text, "Store since Sun 22 Nov 2026, 13:05")

	edited := m.editor.post(t, m.path("/devices/many"), url.Values{
		"table":   {strings.Replace(table, "Ana", "Bea", 1)},
		"confirm": {again.find("button[name=confirm]").AttrOr("value", "")},
	})
	require.Contains(t, edited.text, "Bea, from now", "the person has not seen this")
	require.NotContains(t, edited.text, "A device changed")
	label, _ := m.open(t, device)
	require.Equal(t, "Store", label)

	m.now = m.now.Add(time.Minute)
	require.Equal(t, http.StatusSeeOther, m.save(t, again).status)
	label, since := m.open(t, device)
	require.Equal(t, "Ana", label)
	require.Equal(t, m.now, since)
}

// TestChangeManyRefusals checks the sentence about each line that is not valid, and that then no other line is saved.
func TestChangeManyRefusals(t *testing.T) {
	t.Parallel()
	m := newMany(t)
	a := m.addNamedDevice(t, "dev:1", "Dorm 1", nil)
	m.addNamedDevice(t, "dev:2", "Dorm 2", nil)
	m.addNamedDevice(t, "dev:4", "Twin", nil)
	m.addNamedDevice(t, "dev:5", "Twin", nil)
	foreign := m.addDevice(t, m.addTeam(t, "Other"), "dev:6", "Secret room", 0)
	m.start(t, athlete(a, "Ana", m.now.Add(-time.Hour)))
	retired := m.addNamedDevice(t, "dev:8", "Retired", nil)
	_, err := m.store.RetireDevice(t.Context(), m.team, retired, m.now)
	require.NoError(t, err)
	past := m.addNamedDevice(t, "dev:7", "Past", nil)
	ended := m.addAssignment(t, past, "Old", m.now.Add(-9*time.Hour))
	_, err = m.store.ChangeAssignments(t.Context(), m.team, roomsensor.EndAssignment(ended, m.now.Add(-2*time.Hour)), nil)
	require.NoError(t, err)
	for _, c := range []struct{ table, sentence string }{
		{"", "Line 1: The table is empty."},
		{"name,new name\n", "Line 1: The table is empty."},
		{"new name\nx", "one of them must be device_id, hardware_id or name"},
		{"name,room\nDorm 1,x", "Line 1: There is no column “room”."},
		{"name,place,Place\nDorm 1,x,y", "Line 1: The column “Place” occurs twice."},
		{"name,tag:Gebäude\nDorm 1,x", "Line 1: The column “tag:Gebäude” must have a key"},
		{"name,person\nDorm 1,\"x", "Line 2: A quotation mark is not closed"},
		{"name,person\nDorm 2,x,y", "Line 2: The line has a cell that belongs to no column."},
		{"name,person\n,x", "Line 2: The line names no device."},
		{"name,person\nDorm 2,Bea\nDorm 3,x", "Line 3: This team has no device “Dorm 3”."},
		{"device_id,person\n" + foreign.String() + ",x", "Line 2: This team has no device “" + foreign.String() + "”."},
		{"hardware_id,person\ndev:6,x", "Line 2: This team has no device “dev:6”."},
		{"name,person\nRetired,x", "Line 2: This team has no device “Retired”."},
		{"name,person\nTwin,x", "Line 2: Several devices of this team are called “Twin”."},
		{"hardware_id,name\ndev:2,Hall", "Line 2: The name of this device is “Dorm 2”. To change it, call the column new name."},
		{"name,person\nDorm 2,x\nDorm 2,y", "Line 3: Line 2 is about the same device."},
		{"name,new name\nDorm 2," + strings.Repeat("x", 201), "Line 2: The name has 201 characters"},
		{"name,tag:a\nDorm 2," + strings.Repeat("x", 501), "Line 2: A tag is not valid: a has 501 characters"},
		{"name,tags\nDorm 2,wing", "Line 2: Enter tags as key=value"},
		{"name,person,place\nDorm 2,Bea,Hall", "Line 2: Enter a person or a place, and not both."},
		{"name,person,since\nDorm 2,Bea,yesterday", "Line 2: Enter a date and a time"},
		{"name,person,since\nDorm 2,Bea,2027-01-01", "Line 2: This time is in the future."},
		{"name,person,since\nDorm 1,Bea,2026-11-22 12:00", "Line 2: “Ana” started on Sun 22 Nov 2026, 13:05. Enter a later time."},
		{"name,person,since\nDorm 2,Ana,2026-11-22 12:00", "Line 2: “Ana” started on Sun 22 Nov 2026, 13:05. Enter a later time."},
		{"name,person,since\nDorm 1,Ana,2026-11-22 12:00", "Line 2: Ana since Sun 22 Nov 2026, 13:05 is there already."},
		{"name,person\nDorm 1,Ana\nDorm 2,ana", "Line 3: ana is on line 2, too."},
		{"name,person,since\nPast,x,2026-11-22 06:00", "Line 2: Past had the assignment “Old” from Sun 22 Nov 2026, 05:05 to"},
		{"name,person\n" + strings.Repeat("Dorm 1,\n", 1001), "Line 1002: The table has more than 1,000 lines."},
		{"name,person\n" + strings.Repeat("x", 256<<10), "Line 1: The table has more than 256 KB."},
	} {
		refused := m.check(t, c.table)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, c.sentence)
		require.Contains(t, refused.find("#table-error").Text(), c.sentence)
		require.Equal(t, "table", refused.find("[autofocus]").AttrOr("id", ""))
		require.NotContains(t, refused.text, "Secret room")
		require.Equal(t, c.table, refused.find("textarea").Text())
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, m.check(t, strings.Repeat("x", 1<<20)).status)
	label, _ := m.open(t, a)
	require.Equal(t, "Ana", label)
}

// TestChangeManyDevices sends a table of as many lines as it can have. It changes a tenth of them, because a request has
// 10 seconds, and each change takes milliseconds on a busy machine.
func TestChangeManyDevices(t *testing.T) {
	t.Parallel()
	m := newMany(t)
	m.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || n FROM generate_series(1, 1001) n`, m.team)
	page := m.editor.get(t, m.path("/devices/many"))
	require.Contains(t, page.text, "The table has no room for 1 more device.")
	var table strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(page.find("textarea").Text()), "\n") {
		if 0 < i && i <= 20 {
			line = strings.Replace(line, ",,,", ",Room "+strings.Split(line, ",")[0]+",,Place,", 1)
		}
		table.WriteString(line + "\n")
	}
	require.Contains(t, m.editor.follow(t, m.save(t, m.check(t, table.String()))).text, "Changed 20 devices.")
}
