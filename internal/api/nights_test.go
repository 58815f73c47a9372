package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// night is the part of an item of GET /nights that its tests read.
type night struct {
	Night        string
	From, To     time.Time
	AssignmentID uuid.UUID `json:"assignment_id"`
	Label        string
	Verdict      string
	Expected     int
}

// nights returns the items on all pages of GET /nights, as night and label, without the year.
func (f *fixture) nights(t *testing.T, query string) (found []string) {
	t.Helper()
	for _, page := range allPages[night](t, f, "/nights", query) {
		for _, n := range page.Data {
			found = append(found, n.Night[len("2026-"):]+" "+n.Label)
		}
	}
	return found
}

func TestNightParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A17.1")
	f := setup(t)
	f.addPeople(t) // Ana moved from one room to the other at 07:00 on November 20, and Bo has no earlier night.
	newest, before := "11-19 Ana", "11-18 Ana"
	for query, want := range map[string][]string{
		"": {newest}, "night=2026-11-18": {before}, "night=2026-11-20": nil, "night=2026-11-14": nil, "night=0001-01-01": nil,
		"from_night=2026-11-18": {newest, before}, "from_night=2026-11-19": {newest},
		"from_night=2026-11-17&to_night=2026-11-18": {before, "11-17 Ana"}, "from_night=2026-11-18&to_night=2027-01-01": {newest, before},
		"from_night=2026-11-01&to_night=2026-11-15": {"11-15 Ana"}, "from_night=2026-08-20": {newest, before, "11-17 Ana", "11-16 Ana", "11-15 Ana"},
		"external_ref=crm-7": {newest}, "external_ref=crm-8": nil, "metadata.floor=2": nil, "metadata.floor=%00": nil,
	} {
		require.Equal(t, want, f.nights(t, query), query)
		require.Equal(t, fmt.Sprint(len(want)), f.head(t, "/nights.csv?"+query).header.Get("X-Row-Count"), query)
	}
	for query, want := range map[string]struct {
		code  roomsensor.Code
		param string
	}{
		"night=2026-11-18&from_night=2026-11-18":    {invalid, "night"},
		"to_night=2026-11-18&night=2026-11-18":      {invalid, "night"},
		"to_night=2026-11-18":                       {invalid, "to_night"},
		"night=2026-1-1":                            {invalid, "night"},
		"night=20261118":                            {invalid, "night"},
		"from_night=2026-02-30":                     {invalid, "from_night"},
		"from_night=2026-11-20":                     {roomsensor.CodeTimeRangeInvalid, "from_night"},
		"from_night=2026-11-19&to_night=2026-11-18": {roomsensor.CodeTimeRangeInvalid, "to_night"},
		"from_night=2026-08-19":                     {roomsensor.CodeTimeRangeTooWide, "from_night"},
		"from_night=2026-01-01&to_night=2026-04-03": {roomsensor.CodeTimeRangeTooWide, "from_night"},
	} {
		f.get(t, "/nights?"+query).requireError(t, want.code, want.param)
		f.get(t, "/nights.csv?"+query).requireError(t, want.code, want.param)
	}
	f.get(t, "/nights?from_night=2026-01-01&to_night=2026-04-02").requireOK(t)

	f.clock.advance(16*time.Hour + 29*time.Minute) // To 02:29: a minute before half of the night.
	require.Equal(t, []string{newest}, f.nights(t, ""))
	running := decode[list[night]](t, f.get(t, "/nights?night=2026-11-20")).Data
	require.Len(t, running, 2)
	require.Equal(t, 53, running[0].Expected, "up to now")
	f.clock.advance(time.Minute)
	require.Equal(t, []string{"11-20 Ana", "11-20 Bo"}, f.nights(t, ""))
	f.exec(t, `UPDATE teams SET (time_zone, night_start, night_end) = ('America/New_York', '21:00', '05:30')`)
	got := decode[list[night]](t, f.get(t, "/nights?night=2026-11-19")).Data
	require.Len(t, got, 4, "Ana moved during this night")
	require.Equal(t, time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC), got[0].From)
	require.Equal(t, time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC), got[1].To)
}

// A cursor keeps the nights, the filters, the time zone, the hours of the night and now of the first page.
func TestNightCursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A17.1")
	f := setup(t)
	f.addPeople(t)
	f.clock.advance(14 * time.Hour)
	running := f.firstCursor(t, "/nights?night=2026-11-20&limit=1")
	filtered := f.firstCursor(t, "/nights?from_night=2026-11-18&external_ref=crm-7&limit=1") // Up to November 19.
	f.clock.advance(day)
	f.exec(t, `UPDATE teams SET (time_zone, night_start, night_end) = ('Asia/Tokyo', '12:00', '13:00')`)
	rest := decode[list[night]](t, f.get(t, "/nights?cursor="+running)).Data
	require.Len(t, rest, 1)
	require.Equal(t, 24, rest[0].Expected, "two hours of the night")
	for query, param := range map[string]string{
		"": "", "&from_night=2026-11-18": "", "&to_night=2026-11-19&external_ref=crm-7": "", "&night=2026-11-18": "night",
		"&from_night=2026-11-17": "from_night", "&to_night=2026-11-20": "to_night", "&external_ref=x&night=2026-11-18": "external_ref",
		"&metadata.a=b": "metadata.a", "&night=2026-11-18&metadata.a=b": "night",
	} {
		if param != "" {
			f.get(t, "/nights?cursor="+filtered+query).requireInvalid(t, param)
			continue
		}
		require.Equal(t, []string{"11-18 Ana"}, f.nights(t, "cursor="+filtered+query), query)
	}
	f.get(t, "/nights?night=2026-11-20&cursor="+running).requireOK(t)
}

// addNight adds assignments since the start of November, and readings with one value of CO2 in the last night: one room
// that was bad, two that were stuffy for equally long, one athlete and one place that were good, and two without readings.
func (f *fixture) addNight(t *testing.T) {
	t.Helper()
	for i, room := range []struct {
		label, kind string
		co2         float32
	}{
		{"Room 10", "place", 0},
		{"Room 9", "place", 0},
		{"Gym", "place", 700},
		{"Ana", "athlete", 700},
		{"Stuffy", "place", 1100},
		{"Stuffier", "place", 1101},
		{"=Bad", "place", 1401},
	} {
		device := testID(0xdd, i)
		f.addDevice(t, teamID, device, fmt.Sprint("dev:10", i))
		f.addAssignment(t, device, testID(0xa5, i), start.Add(-19*day), nil)
		f.exec(t, `UPDATE assignments SET (type, label, external_ref) = ($2, $3, '+' || $3) WHERE id = $1`, testID(0xa5, i), room.kind, room.label)
		if room.co2 > 0 {
			f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, ingested_at) SELECT $1, t, $2, 20.25, $3
				FROM generate_series('2026-11-19 22:00Z', '2026-11-20 06:55Z'::timestamptz, '5 minutes') t`, device, room.co2, start)
		}
	}
}

// TestNightPages checks the order of a night, and that late readings, which change it, never repeat or skip an
// assignment.
func TestNightPages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A17.2")
	f := setup(t)
	f.addNight(t)
	want := []string{"11-19 =Bad", "11-19 Stuffier", "11-19 Stuffy", "11-19 Room 9", "11-19 Room 10", "11-19 Ana", "11-19 Gym"}
	for _, limit := range []string{"", "limit=1", "limit=3"} {
		require.Equal(t, want, f.nights(t, limit))
	}
	require.Len(t, f.nights(t, "from_night=2026-11-01&limit=5"), 19*7, "pages end within a night")
	requireGolden(t, "nights.json.golden", f.get(t, "/nights?limit=1&external_ref=%2B%3DBad").body)

	page := decode[list[night]](t, f.get(t, "/nights?limit=3"))
	f.exec(t, `UPDATE readings SET co2_ppm = 1600 WHERE device_id = $1`, testID(0xdd, 2)) // Gym is now the worst,
	f.exec(t, `DELETE FROM readings WHERE device_id = $1`, testID(0xdd, 6))               // and nothing is known of =Bad.
	rest := f.nights(t, "limit=2&cursor="+url.QueryEscape(*page.NextCursor))
	require.Equal(t, []string{"11-19 Gym", "11-19 Room 9", "11-19 Room 10", "11-19 Ana"}, rest)
}

func TestNightsCSV(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A17.3")
	f := setup(t)
	f.addNight(t)
	got := f.get(t, "/nights.csv?from_night=2026-11-18&key="+f.key, withoutKey).requireOK(t)
	require.Equal(t, `attachment; filename="nights_2026-11-18_2026-11-19.csv"`, got.header.Get("Content-Disposition"))
	require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, "14", got.header.Get("X-Row-Count"))
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	head := f.head(t, "/nights.csv?from_night=2026-11-18")
	for _, name := range []string{"X-Row-Count", "Content-Disposition", "Content-Type"} {
		require.Equal(t, got.header.Get(name), head.header.Get(name), name)
	}
	rows := got.records(t)
	require.Equal(t, "'=Bad", rows[1][5])
	require.Equal(t, "'+=Bad", rows[1][6])
	items := f.items(t, "/nights?from_night=2026-11-18")
	require.Len(t, rows, 1+len(items))
	for i, row := range rows[1:] {
		for column, name := range rows[0] {
			value := items[i][name]
			for _, metric := range roomsensor.Metrics {
				if field, ok := strings.CutPrefix(name, metric.String()+"_"); ok {
					value = items[i][metric.String()].(map[string]any)[field]
				}
			}
			text, err := json.Marshal(value)
			require.NoError(t, err)
			cell := strings.TrimPrefix(row[column], "'")
			require.Equal(t, strings.Trim(strings.TrimPrefix(string(text), "null"), `"`), cell, name)
		}
		require.Len(t, row, 13+5*5)
	}
	require.Len(t, f.get(t, "/nights.csv?night=2026-10-01").records(t), 1, "the header row")

	// More than 250,000 rows, and more than 5,000 assignments in a night, are refused before a reading is read.
	f.exec(t, `ALTER TABLE assignments DROP CONSTRAINT assignments_no_overlap`)
	add := func(n int) {
		f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at) SELECT $1, 'place', 'Room', $2 FROM generate_series(1, $3)`,
			deviceID, start.Add(-100*day), n)
	}
	const most = "/nights.csv?from_night=2026-08-20&to_night=2026-11-19"
	add(2715)
	require.Equal(t, "249913", f.head(t, most).header.Get("X-Row-Count"), "92 nights of 2715, and 19 of 7")
	add(1)
	require.Equal(t, http.StatusRequestEntityTooLarge, f.head(t, most).status)
	refused := f.get(t, most)
	refused.requireError(t, roomsensor.CodeCSVTooLarge, "")
	require.Contains(t, string(refused.body), "would have 250005 rows; at most 250000 are allowed")
	add(2278)
	require.Len(t, f.items(t, "/nights?external_ref=%2BAna"), 1)
	for _, path := range []string{"/nights", "/nights.csv"} {
		f.get(t, path).requireInvalid(t, "")
		require.Equal(t, http.StatusBadRequest, f.head(t, path).status)
	}
}
