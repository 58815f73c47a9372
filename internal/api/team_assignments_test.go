package api_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// addPeople gives two devices the assignments of a person who moved, of a place and of another person, by their ids:
// 1 ended 3 hours before start, and 2 began then in another room; 3 is a place with the same label, 4 is Bo.
func (f *fixture) addPeople(t *testing.T) {
	t.Helper()
	second := testID(0xde, 2)
	f.addDevice(t, teamID, second, "dev:2")
	f.nameDevice(t, second, "Room 2")
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"2"}' WHERE id = $1`, second)
	moved := start.Add(-3 * time.Hour)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-5*day), &moved)
	f.addAssignment(t, second, testID(0xa5, 2), moved, nil)
	f.addAssignment(t, deviceID, testID(0xa5, 3), moved, new(start.Add(-time.Hour)))
	f.addAssignment(t, deviceID, testID(0xa5, 4), start.Add(-time.Hour), nil)
	f.exec(t, `UPDATE assignments SET (type, label, external_ref) = ('athlete', 'Ana', 'crm-7') WHERE id IN ($1, $2)`,
		testID(0xa5, 1), testID(0xa5, 2))
	f.exec(t, `UPDATE assignments SET label = 'Ana' WHERE id = $1`, testID(0xa5, 3))
	f.exec(t, `UPDATE assignments SET (type, label) = ('athlete', 'Bo') WHERE id = $1`, testID(0xa5, 4))
}

// addNamesake gives a device of another team an assignment with the reference of addPeople.
func (f *fixture) addNamesake(t *testing.T) uuid.UUID {
	t.Helper()
	team, device, assignment := testID(0x7e, 9), testID(0xde, 9), testID(0xa5, 9)
	f.addTeam(t, team)
	f.addDevice(t, team, device, "dev:9")
	f.addAssignment(t, device, assignment, start.Add(-5*day), nil)
	f.exec(t, "UPDATE assignments SET external_ref = 'crm-7' WHERE id = $1", assignment)
	return device
}

// teamAssignments returns the numbers of the assignments on all pages.
func (f *fixture) teamAssignments(t *testing.T, query string) (numbers string) {
	t.Helper()
	for _, id := range allValues(t, f, "/assignments", query, "assignment_id") {
		numbers += id[len(id)-1:]
	}
	return numbers
}

func TestTeamAssignments(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A18.1")
	f := setup(t)
	f.addPeople(t)
	for query, want := range map[string]string{
		"": "42", "last=30m": "42", "last=1h": "42", "last=61m": "423", "last=3h": "423", "last=181m": "4231", "last=3660d": "4231",
		"to=" + before(day): "1", "from=" + before(4*time.Hour) + "&to=" + before(3*time.Hour): "1",
		"from=" + before(3*time.Hour) + "&to=" + before(2*time.Hour): "23",
		"from=" + before(9*day) + "&to=" + before(5*day):             "",
		"from=2026-11-20T10:00:00Z&to=2027-01-01T00:00:00Z":          "42", // An open assignment has no end yet.
		"type=athlete&last=1d":                                       "421", "type=place&last=1d": "3", "label=Ana&last=1d": "231", "label=ana&last=1d": "",
		"external_ref=crm-7": "2", "external_ref=crm-7&last=1d": "21", "external_ref=crm-8&last=1d": "",
		"metadata.floor=2&last=1d": "2", "metadata.floor=%00&last=1d": "", "label=Ana&type=place&metadata.floor=2&last=1d": "",
	} {
		require.Equal(t, want, f.teamAssignments(t, query), query)
		require.Equal(t, want, f.teamAssignments(t, query+"&limit=1"), query)
	}
	require.Equal(t, `{"data":[{"assignment_id":"`+testID(0xa5, 2).String()+`","type":"athlete","label":"Ana","home_or_travel":"travel",`+
		`"started_at":"2026-11-20T07:00:00Z","ended_at":null,"external_ref":"crm-7","device_id":"`+testID(0xde, 2).String()+
		`","display_name":"Room 2"}],"next_cursor":null}`, string(f.get(t, "/assignments?external_ref=crm-7").body))
	f.get(t, "/assignments?last=3661d").requireError(t, roomsensor.CodeTimeRangeTooWide, "last")

	_, err := f.store.RetireDevice(t.Context(), teamID, deviceID, start)
	require.NoError(t, err)
	require.Equal(t, "4231", f.teamAssignments(t, "last=1d"), "those of a retired device")
}

// A cursor keeps the window, the filters and now of the first page, and a parameter beside it must mean the same.
func TestTeamAssignmentCursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A18.1")
	f := setup(t)
	f.addPeople(t)
	filtered := f.firstCursor(t, "/assignments?last=1d&type=athlete&label=Ana&external_ref=crm-7&limit=1")
	open := f.firstCursor(t, "/assignments?limit=1")
	f.clock.advance(time.Hour)
	f.exec(t, `UPDATE assignments SET ended_at = $1 WHERE ended_at IS NULL`, start.Add(time.Minute))
	for query, param := range map[string]string{
		"": "", "&last=24h": "", "&label=Ana&external_ref=crm-7": "", "&type=place": "type", "&label=Bo&last=1h": "label",
		"&last=1h&label=Bo": "last", "&external_ref=crm-8": "external_ref", "&metadata.a=b": "metadata.a",
	} {
		if param != "" {
			f.get(t, "/assignments?cursor="+filtered+query).requireInvalid(t, param)
			continue
		}
		require.Equal(t, "1", f.teamAssignments(t, "cursor="+filtered+query))
	}
	require.Equal(t, "2", f.teamAssignments(t, "cursor="+open), "open when the list began")
	for query, param := range map[string]string{"last=24h": "last", "type=place": "type", "label=Ana": "label"} {
		f.get(t, "/assignments?cursor="+open+"&"+query).requireInvalid(t, param)
	}
}

// TestReadingsByReference compares what external_ref selects with the exports of its assignments. Ana was in the first
// room until 3 hours before start, and has been in the second since then.
func TestReadingsByReference(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A18.2")
	f := setup(t)
	f.addPeople(t)
	second := testID(0xde, 2)
	for _, device := range []uuid.UUID{deviceID, second, f.addNamesake(t)} {
		f.addReadings(t, device, start.Add(-6*time.Hour), 70)
	}
	rows := func(query string) [][]string { return f.get(t, "/readings.csv?include=assignment&"+query).records(t) }
	want := append(rows("assignment_id="+testID(0xa5, 1).String()), rows("assignment_id=" + testID(0xa5, 2).String())[1:]...)
	require.Len(t, want, 1+36+34)
	require.Equal(t, want, rows("external_ref=crm-7"), "the rooms and their rows follow each other")

	for path, count := range map[string]string{
		"/readings.parquet?": "70", "/readings.csv?shape=wide&": "70", "/readings.csv?last=4h&": "46",
		"/readings.csv?metadata.floor=2&": "34", "/aggregates.csv?interval=1h&": "6", "/aggregates.csv?interval=1d&fill=true&": "12",
	} {
		got := f.get(t, path+"external_ref=crm-7").requireOK(t)
		require.Equal(t, count, got.header.Get("X-Row-Count"), path)
		require.Equal(t, count, f.head(t, path+"external_ref=crm-7").header.Get("X-Row-Count"), path)
		require.Contains(t, got.header.Get("Content-Disposition"), "_20261120T100000Z.", path)
		require.Equal(t, "0", f.get(t, path+"external_ref=crm-8").requireOK(t).header.Get("X-Row-Count"), path)
		for _, other := range []string{"&devices=" + deviceID.String(), "&assignment_id=" + testID(0xa5, 1).String()} {
			f.get(t, path+"external_ref=crm-7"+other).requireInvalid(t, "external_ref")
		}
	}
	f.exec(t, "UPDATE assignments SET started_at = '2026-11-20 07:30Z' WHERE id = $1", testID(0xa5, 2))
	require.Equal(t, [][]string{
		{"2026-11-20T06:00:00Z", "2026-11-20T07:00:00Z", deviceID.String(), "", "12", "12", "24", "35", "29.5", "12"},
		{"2026-11-20T07:00:00Z", "2026-11-20T08:00:00Z", second.String(), "Room 2", "6", "6", "42", "47", "44.5", "6"},
		{"2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z", second.String(), "Room 2", "12", "12", "48", "59", "53.5", "12"},
	}, f.get(t, "/aggregates.csv?interval=1h&metrics=co2_ppm&external_ref=crm-7").records(t)[3:6])

	items := f.coverage(t, "external_ref=crm-7")
	require.Len(t, items, 2)
	require.Equal(t, []int{252, 36, 30, 28}, []int{items[0].Expected, items[0].Present, items[1].Expected, items[1].Present})
	require.Empty(t, f.coverage(t, "external_ref=crm-8"))
	require.Empty(t, f.coverage(t, "external_ref=crm-7&from="+before(9*day)+"&to="+before(8*day)))
}

// TestChangesByReference follows the readings of a person, whose assignments count as they are when a page is read.
func TestChangesByReference(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A18.2")
	f := setupFeed(t)
	f.addPeople(t)
	begin := f.changes(t, "external_ref=crm-7").NextCursor
	for _, device := range []uuid.UUID{deviceID, testID(0xde, 2), f.addNamesake(t)} {
		f.storeReading(t, device, start.Add(-3*time.Hour-time.Minute), 400)
		f.storeReading(t, device, start.Add(-3*time.Hour), 500)
	}
	got, next := f.follow(t, "cursor="+url.QueryEscape(begin), 2)
	require.Equal(t, []uuid.UUID{deviceID, testID(0xde, 2)}, []uuid.UUID{got[0].DeviceID, got[1].DeviceID})
	require.Equal(t, []float64{400, 500}, []float64{*got[0].CO2, *got[1].CO2})
	f.get(t, changesPath+"?external_ref=crm-8&cursor="+url.QueryEscape(next)).requireInvalid(t, "external_ref")
	f.get(t, changesPath+"?external_ref=crm-7&devices="+deviceID.String()).requireInvalid(t, "external_ref")
}
