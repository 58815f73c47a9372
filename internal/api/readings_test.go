package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

func TestReadings(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, list", "spec 1, metrics", "decision 1 d", "spec 2, reading, bucket_at", "spec 2, reading, co2_ppm",
		"spec 2, reading, temp_c", "spec 2, reading, humidity_pct", "spec 2, reading, lux", "spec 2, reading, spl_db", "spec 2, reading, ingested_at")
	f := setup(t)
	requireGolden(t, "empty.json.golden", f.get(t, readingsPath).body)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at) VALUES
		($1, '2026-11-20 09:55Z', 612, 21.4, 40.1, 120, 38.2, '2026-11-20 09:56:01.234567Z'),
		($1, '2026-11-20 09:50Z', 0, -0.1, NULL, 100000, 0.000001, '2026-11-20 09:56:01.5Z'),
		($1, '2026-11-20 09:40Z', 16777216, 0.3, 1e-10, 3.4028235e38, 33.333332, '2026-11-20 09:56:01.000001Z')`, deviceID)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, ingested_at) VALUES ($1, '2026-11-20 09:45Z', '2026-11-20 09:56:01Z')`, deviceID)
	requireGolden(t, "readings.json.golden", f.get(t, readingsPath).body)
	require.Equal(t, f.items(t, readingsPath)[0], f.items(t, "/devices/current")[0]["latest"])
}

// from, to and last on the readings and on the export (decisions 3 to 5). Reading i is i hours old.
func TestWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, from", "spec 4, readings, no_time", "spec 4, readings, to",
		"spec 4, readings, last, form", "spec 4, readings, last_wins", "spec 4, readings.csv, window", "spec 1, conventions, rule 1, accepted")
	f := setup(t)
	f.addHourlyReadings(t, 50)
	const tick = time.Microsecond
	hour := func(n int) string { return before(time.Duration(n) * time.Hour) }
	for _, tc := range []struct {
		covers, query string
		later         time.Duration // of the request, after start
		want          []int
	}{
		{"decision 3 a", "from=" + hour(2) + "&to=" + hour(1), 0, []int{2}},
		{"decision 3 a", "from=" + hour(2) + "&to=" + before(time.Hour-tick), 0, []int{1, 2}},
		{"decision 3 a", "last=2h", tick, []int{0, 1}},
		{"decision 3 b", "", 0, between(1, 24)},
		{"decision 3 b", "", tick, between(0, 23)},
		{"decision 3 c", "from=" + hour(2), 0, []int{1, 2}},
		{"decision 3 c", "from=" + hour(2), tick, []int{0, 1, 2}},
		{"decision 3 d", "to=" + hour(24), 0, between(25, 48)},
		{"decision 3 d", "to=" + before(-tick), 0, between(0, 23)},
		{"decision 3 a", "from=" + hour(-5) + "&to=" + hour(-6), 0, []int{}},
		{"decision 4 b", "last=90d", 0, between(1, 49)},
		{"decision 4 b", "last=" + strings.Repeat("0", 4000) + "90d", 0, between(1, 49)},
		{"decision 4 b", "from=" + hour(90*24), 0, between(1, 49)},
		{"decision 4 b", "from=" + before(90*day+time.Hour) + "&to=" + hour(1), 0, between(2, 49)},
		{"decision 5 a", "last=24h", 0, between(1, 24)},
		{"decision 5 a", "last=180m", 0, []int{1, 2, 3}},
		{"decision 5 a", "last=%30003h", 0, []int{1, 2, 3}},
		{"decision 5 a", "last=1m", 0, []int{}},
		{"decision 5 c", "last=1h&from=x&to=y", 0, []int{1}},
		{"decision 5 c", "from=&last=1h&to=", 0, []int{1}},
		{"decision 5 c", "last=1h&from=%FF&to=%00", 0, []int{1}},
	} {
		conformance.Covers(t, tc.covers)
		f.clock.advance(tc.later)
		require.Equal(t, tc.want, f.selected(t, tc.query), "%s %s", tc.query, tc.later)
		f.clock.advance(-tc.later)
	}
}

func between(first, last int) []int {
	numbers := []int{}
	for i := first; i <= last; i++ {
		numbers = append(numbers, i)
	}
	return numbers
}

func TestRefusedWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, rule 1", "spec 4, readings, to_after_from", "spec 4, readings, last, maximum",
		"spec 4, readings.csv, window", "spec 8, time_range", "spec 1, conventions, rule 1, accepted", "decision 4 c")
	f := setup(t)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-2*day), new(start.Add(-day)))
	const malformed, tooWide = roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide
	for _, tc := range []struct {
		covers, query string
		code          roomsensor.Code
		param         string
	}{
		{"decision 3 e", "from=" + before(time.Hour) + "&to=" + before(time.Hour), malformed, "to"},
		{"decision 3 e", "from=9999-12-31T23:59:59Z&to=0000-01-01T00:00:00Z", malformed, "to"},
		{"decision 3 f", "from=" + before(0), malformed, "from"},
		{"decision 3 f", "from=" + before(-time.Microsecond), malformed, "from"},
		{"decision 4 a", "from=" + before(90*day+time.Microsecond), tooWide, "from"},
		{"decision 4 a", "from=0000-01-01T00:00:00Z&to=9999-12-31T23:59:59Z", tooWide, "from"},
		{"decision 4 a", "last=91d", tooWide, "last"},
		{"decision 4 a", "last=129601m", tooWide, "last"},
		{"decision 4 a", "last=" + strings.Repeat("9", 4000) + "h", tooWide, "last"},
	} {
		conformance.Covers(t, tc.covers)
		for _, path := range []string{readingsPath, "/readings.csv"} {
			f.get(t, path+"?"+tc.query).requireError(t, tc.code, tc.param)
			f.get(t, path+"?"+tc.query+"&assignment_id="+testID(0xa5, 1).String()).requireError(t, tc.code, tc.param)
		}
	}

	conformance.Covers(t, "decision 5 b")
	for i, text := range []string{ // FuzzLast of package roomsensor tests the form.
		"", " ", "0d", "90", "-1h", "+5m", "5 m", "5m\n", "5\x00m", "1.5h", "1w", "1H", "1h30m", "PT1H", "１h", "\xff", "5m;",
	} {
		path := []string{readingsPath, "/readings.csv"}[i%2]
		f.get(t, path+"?last="+url.QueryEscape(text)).requireError(t, malformed, "last")
		f.get(t, path+"?last="+url.QueryEscape(text)+"&from=x&to=y").requireError(t, malformed, "last")
	}
}

// The form of an instant is YYYY-MM-DDTHH:MM:SS[.1 to 9 digits]Z; digits past the microsecond are truncated (decision
// 2).
func TestInstants(t *testing.T) {
	t.Parallel()
	f := setup(t)
	eight := start.Add(-2 * time.Hour)
	f.addReading(t, deviceID, eight, 800)
	f.addReading(t, deviceID, eight.Add(5*time.Minute), 805)
	conformance.Covers(t, "decision 2 a", "decision 2 b")
	for text, isEight := range map[string]bool{ // Whether [text, ...) contains 08:00.
		"2026-11-20T08:00:00Z": true, "2026-11-20T08:00:00.0Z": true, "2026-11-20T08:00:00.00000Z": true, "2026-11-20T08:00:00.000000Z": true,
		"2026-11-20T08:00:00.0000009Z": true, "2026-11-20T08:00:00.00000099Z": true, "2026-11-20T08:00:00.000000999Z": true,
		"2026-11-20T07:59:59.999999999Z": true,
		"2026-11-20T08:00:00.1Z":         false, "2026-11-20T08:00:00.0001Z": false, "2026-11-20T08:00:00.000001Z": false,
		"2026-11-20T08:00:00.0000019Z": false, "2026-11-20T08:00:00.00000100Z": false, "2026-11-20T08:00:00.000001999Z": false,
	} {
		from, to := []int{805}, []int{800}
		if isEight {
			from, to = []int{805, 800}, []int{}
		}
		require.Equal(t, from, f.selected(t, "from="+text), text)
		require.Equal(t, to, f.selected(t, "from=2026-11-20T07:00:00Z&to="+text), text)
	}
	for _, query := range []string{
		"from=0000-01-01T00:00:00Z&to=0000-01-02T00:00:00Z", "to=0000-01-02T00:00:00Z", "to=0001-01-01T00:00:00Z",
		"from=9999-12-30T23:59:59.999999999Z&to=9999-12-31T23:59:59.999999999Z", "to=9999-12-31T23:59:59Z",
		"from=2024-02-29T00:00:00Z&to=2024-03-01T00:00:00Z",
	} {
		require.Empty(t, f.selected(t, query), query)
	}

	conformance.Covers(t, "decision 2 c")
	forms := []struct{ query, param string }{
		{"from=%s", "from"},
		{"to=%s", "to"},
		{"from=%s&to=2026-11-20T08:00:00Z", "from"},
		{"from=2026-11-20T07:00:00Z&to=%s", "to"},
		{"to=%[1]s&from=%[1]s", "from"},
	}
	f.resetRateLimits(t)
	for i, text := range []string{ // Package roomsensor tests the form.
		"", "now", "1763625600", "2026-11-20", "2026-11-20T08:00:00", "2026-11-20T08:00:00+00:00", "2026-11-20t08:00:00Z",
		" 2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z\x00", "2026-11-20T08:00:00.1234567890Z", "2016-12-31T23:59:60Z",
		"2026-02-29T08:00:00Z", "\xff", "%",
	} {
		form := forms[i%len(forms)]
		for _, path := range []string{readingsPath, "/readings.csv"} {
			got := f.get(t, path+"?"+fmt.Sprintf(form.query, url.QueryEscape(text)))
			got.requireError(t, roomsensor.CodeTimeRangeInvalid, form.param)
		}
	}
}

// assignment_id selects the intersection of the window and the assignment. Reading i is i hours old.
func TestReadingsOfAnAssignment(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings, assignment_id", "spec 4, readings, rule 2", "spec 4, readings, rule 3, intersection",
		"spec 4, readings, rule 3, outside", "spec 4, readings, rule 4, not_found", "spec 4, readings, rule 4, alike",
		"spec 4, readings, rule 5", "spec 9, rule 4, filter", "spec 1, assignments", "spec 2, assignment, window", "spec 2, assignment, assignment_id")
	f := setup(t)
	f.addHourlyReadings(t, 50)
	f.addReading(t, deviceID, start.Add(5*time.Minute), -1)
	f.addReading(t, deviceID, start.Add(-200*day), 200)
	f.addReading(t, deviceID, start.Add(-100*day), 100)
	assignments := map[string]uuid.UUID{"long": testID(0xa5, 1), "closed": testID(0xa5, 2), "open": testID(0xa5, 3)}
	f.addAssignment(t, deviceID, assignments["long"], start.Add(-200*day), new(start.Add(-90*day)))
	f.addAssignment(t, deviceID, assignments["closed"], start.Add(-20*time.Hour), new(start.Add(-10*time.Hour)))
	f.addAssignment(t, deviceID, assignments["open"], start.Add(-5*time.Hour), nil)
	hour := func(n int) string { return before(time.Duration(n) * time.Hour) }
	for _, tc := range []struct {
		covers, query, assignment string
		want                      []int
	}{
		{"decision 4 d", "", "long", []int{100, 200}},
		{"decision 4 d", "", "closed", between(11, 20)},
		{"decision 4 d", "", "open", []int{-1, 0, 1, 2, 3, 4, 5}},
		{"decision 4 e", "from=" + hour(30) + "&", "closed", between(11, 20)},
		{"decision 4 e", "from=" + hour(30) + "&to=" + before(20*time.Hour-time.Microsecond) + "&", "closed", []int{20}},
		{"decision 4 e", "from=" + hour(30) + "&to=" + hour(20) + "&", "closed", []int{}},
		{"decision 4 e", "to=" + hour(12) + "&", "closed", between(13, 20)},
		{"decision 4 e", "last=15h&", "closed", between(11, 15)},
		{"decision 4 e", "last=90d&", "open", []int{1, 2, 3, 4, 5}},
		{"decision 4 e", "to=" + hour(4) + "&", "open", []int{5}},
	} {
		conformance.Covers(t, tc.covers)
		require.Equal(t, tc.want, f.selected(t, tc.query+"assignment_id="+assignments[tc.assignment].String()), "%s %s", tc.query, tc.assignment)
	}
	f.get(t, readingsPath+"?assignment_id=7").requireInvalid(t, "assignment_id")
	f.get(t, readingsPath+"?last=91d&assignment_id="+assignments["closed"].String()).requireError(t, roomsensor.CodeTimeRangeTooWide, "last")

	// An assignment of another device is as unknown as one that does not exist.
	other := testID(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	f.addAssignment(t, other, testID(0xa5, 4), start.Add(-5*time.Hour), nil)
	unknown, elsewhere := f.get(t, readingsPath+"?assignment_id="+unknownID), f.get(t, readingsPath+"?assignment_id="+testID(0xa5, 4).String())
	unknown.requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	elsewhere.requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	require.Equal(t, randomID.ReplaceAll(unknown.body, nil), randomID.ReplaceAll(elsewhere.body, nil))
}
