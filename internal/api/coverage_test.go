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

// install adds an installation to a device; nil is unbounded.
func (f *fixture) install(t testing.TB, device uuid.UUID, hardwareID string, from, to *time.Time) {
	t.Helper()
	f.exec(t, `INSERT INTO device_hardware (hardware_id, device_id, installed_at, removed_at) VALUES ($1, $2, $3, $4)`,
		hardwareID, device, from, to)
}

// coverageItem is the part of an item of GET /coverage that its tests read.
type coverageItem struct {
	DeviceID          uuid.UUID
	Status            roomsensor.Status
	Expected, Present int
	Coverage          *float64
}

// coverage returns the items of a page of GET /coverage.
func (f *fixture) coverage(t *testing.T, query string) []coverageItem {
	t.Helper()
	return decode[list[coverageItem]](t, f.get(t, "/coverage?"+query)).Data
}

// TestCoverageFields compares a page with a golden file: a device with gaps, one that was never read, one that is
// complete, and one that was removed before the window.
func TestCoverageFields(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A3.2", "A3.3")
	f := setup(t)
	f.fillDevice(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-11-19 09:55Z', 1, 1, 1, 1, 1), ($1, '2026-11-19 10:00Z', 1, 1, NULL, NULL, 'NaN'),
		($1, '2026-11-19 12:00Z', 1, NULL, NULL, NULL, NULL), ($1, '2026-11-20 09:50Z', NULL, NULL, NULL, NULL, NULL),
		($1, '2026-11-20 10:00Z', 1, 1, 1, 1, 1)`, deviceID) // The last bucket is open, the first before the window.
	complete, removed := testID(0xde, 3), testID(0xde, 4)
	f.addDevice(t, teamID, complete, "dev:3")
	f.install(t, complete, "dev:3", new(start.Add(-50*time.Minute)), nil)
	f.addReadings(t, complete, start.Add(-50*time.Minute), 10)
	f.addDevice(t, teamID, removed, "dev:4")
	f.install(t, removed, "dev:4", nil, new(start.Add(-25*time.Hour)))
	requireGolden(t, "coverage.json.golden", f.get(t, "/coverage").body)
}

func TestCoverageParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A3.1")
	f := setup(t)
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"1"}'`)
	for query, want := range map[string]int{
		"": 288, "last=24h": 288, "last=90m": 18, "last=90d": 90 * 288, "from=" + before(time.Hour): 12,
		"from=" + before(time.Hour) + "&to=" + before(55*time.Minute): 1, "to=" + before(day): 288, "metadata.floor=1": 288,
		"from=" + before(61*time.Minute): 12, "from=" + before(time.Hour) + "&to=2026-11-20T11:00:00Z": 12, // Future buckets are open.
		"last=5m": 1, "last=4m": 0, "from=2026-11-20T10:00:00Z&to=2026-11-21T10:00:00Z": 0, "to=0000-01-01T12:00:00Z": 144,
	} {
		got := f.coverage(t, query)
		require.Len(t, got, 1, query)
		require.Equal(t, want, got[0].Expected, query)
	}
	require.Empty(t, f.coverage(t, "metadata.floor=2"))
	require.Empty(t, f.coverage(t, "metadata.floor=%00"))
	f.get(t, "/coverage?last=91d").requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
	f.get(t, "/coverage?to=x").requireError(t, roomsensor.CodeTimeRangeInvalid, "to")
	for _, param := range []string{"assignment_id", "devices", "min", "key"} {
		f.get(t, "/coverage?"+param+"="+unknownID).requireInvalid(t, param)
	}
}

// A bucket becomes expected when it ends, and the status is that of the time of the request.
func TestCoverageAsTimePasses(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A3.3")
	f := setup(t)
	f.exec(t, `UPDATE device_state SET last_seen_at = $1`, start)
	f.addReading(t, deviceID, start, 1)
	const query = "from=2026-11-20T10:00:00Z&to=2026-11-20T12:00:00Z"
	for _, want := range []struct {
		after             time.Duration
		expected, present int
		status            roomsensor.Status
	}{
		{5*time.Minute - time.Microsecond, 0, 0, roomsensor.Online},
		{time.Microsecond, 1, 1, roomsensor.Online},
		{55 * time.Minute, 12, 1, roomsensor.Stale},
		{48 * time.Hour, 24, 1, roomsensor.Offline},
	} {
		f.clock.advance(want.after)
		got := f.coverage(t, query)[0]
		require.Equal(t, want.expected, got.Expected, want.after)
		require.Equal(t, want.present, got.Present, want.after)
		require.Equal(t, want.status, got.Status, want.after)
		require.Equal(t, want.expected == 0, got.Coverage == nil)
	}
}

// A page of a long window has fewer devices than its limit.
func TestCoveragePages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A3.1", "A3.4")
	f := setup(t)
	f.addDevices(t, 25)
	for query, sizes := range map[string][]int{"last=90d": {11, 11, 3}, "last=90d&limit=9": {9, 9, 7}, "": {25}} {
		var got []int
		var ids []string
		for _, page := range allPages[item](t, f, "/coverage", query) {
			got = append(got, len(page.Data))
			for _, i := range page.Data {
				ids = append(ids, i["device_id"].(string))
			}
		}
		requirePageSizes(t, sizes, got, query)
		require.IsIncreasing(t, ids, query)
	}
}

// requirePageSizes compares the sizes of the pages of coverage or aggregates with those that an idle database gives. On
// a busy one, a page may be shorter, and there are more of them.
func requirePageSizes(t *testing.T, want, got []int, query string) {
	t.Helper()
	left := 0
	for _, size := range want {
		left += size
	}
	for _, size := range got {
		require.Positive(t, size, query)
		require.LessOrEqual(t, size, min(want[0], left), "%s: %v", query, got)
		left -= size
	}
	require.Zero(t, left, "%s: %v", query, got)
}

// A cursor keeps the window, the filters and now of the first page, and a parameter beside it must mean the same.
func TestCoverageCursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A0.3", "A3.1", "decision 11 d", "decision 12 g", "decision 12 i")
	f := setup(t)
	f.addDevices(t, 3)
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"1"}'`)
	for _, d := range f.items(t, "/devices") { // No unit was installed at start, and one is an hour later.
		id := uuid.MustParse(d["device_id"].(string))
		f.install(t, id, d["hardware_id"].(string), nil, new(start.Add(-6*time.Hour)))
		f.install(t, id, d["hardware_id"].(string), new(start.Add(30*time.Minute)), nil)
	}
	cursor := f.firstCursor(t, "/coverage?metadata.floor=1&limit=1")
	f.clock.advance(time.Hour)
	require.Equal(t, 288, f.coverage(t, "")[0].Expected)
	for query, param := range map[string]string{
		"": "", "&last=1440m": "", "&metadata.floor=1": "", "&last=25h": "last", "&metadata.floor=2": "metadata.floor",
		"&metadata.floor=2&last=1h": "metadata.floor", "&last=1h&metadata.floor=2": "last", "&metadata.wing=a": "metadata.wing",
	} {
		if param != "" {
			f.get(t, "/coverage?cursor="+cursor+query).requireInvalid(t, param)
			continue
		}
		got := f.coverage(t, "cursor="+cursor+query)
		require.Len(t, got, 1)
		require.Equal(t, 18*12, got[0].Expected, "until the removal")
	}
}

// gaps returns the gaps on all pages of GET /devices/{device_id}/gaps, as "from to missing", without the date.
func (f *fixture) gaps(t *testing.T, query string) (gaps []string) {
	t.Helper()
	for _, page := range allPages[gap](t, f, gapsPath, query) {
		for _, g := range page.Data {
			require.Equal(t, g.Missing, roomsensor.Window{From: g.From, To: g.To}.Buckets())
			gaps = append(gaps, g.From.Format("15:04")+" "+g.To.Format("15:04"))
		}
	}
	return gaps
}

// gap is an item of GET /devices/{device_id}/gaps.
type gap struct {
	From, To time.Time
	Missing  int
}

// addGaps stores readings so that the last hour has gaps of one, three and two buckets, and one at its end.
func (f *fixture) addGaps(t *testing.T) {
	t.Helper()
	for _, minutes := range []int{60, 50, 30, 15, 10} {
		f.addReading(t, deviceID, start.Add(-time.Duration(minutes)*time.Minute), 1)
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A4.2")
	f := setup(t)
	require.Equal(t, []string{"09:00 10:00"}, f.gaps(t, "last=1h"), "a device that never reported")
	f.addGaps(t)
	f.addReading(t, deviceID, start, 1) // Its bucket is open.
	requireGolden(t, "gaps.json.golden", f.get(t, gapsPath+"?last=1h").body)
	f.install(t, deviceID, "dev:1", new(start.Add(-52*time.Minute)), new(start.Add(-12*time.Minute)))
	require.Equal(t, []string{"09:35 09:45", "09:15 09:30"}, f.gaps(t, ""), "without what is not expected")
	for _, page := range f.items(t, gapsPath) { // Each of them is missing in the coverage too.
		require.Contains(t, page, "missing")
	}
	got := f.coverage(t, "")[0]
	require.Equal(t, [2]int{7, 2}, [2]int{got.Expected, got.Present})
}

func TestGapParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A4.1")
	f := setup(t)
	f.addGaps(t)
	closed, open := testID(0xa5, 1), testID(0xa5, 2)
	f.addAssignment(t, deviceID, closed, start.Add(-45*time.Minute), new(start.Add(-32*time.Minute)))
	f.addAssignment(t, deviceID, open, start.Add(-32*time.Minute), nil)
	last := "09:55 10:00"
	for query, want := range map[string][]string{
		"last=1h": {last, "09:35 09:45", "09:15 09:30", "09:05 09:10"}, "": {last, "09:35 09:45", "09:15 09:30", "09:05 09:10", "10:00 09:00"},
		"from=" + before(55*time.Minute) + "&to=" + before(38*time.Minute): {"09:15 09:25", "09:05 09:10"},
		"last=1h&min=1m": {last, "09:35 09:45", "09:15 09:30", "09:05 09:10"}, "last=1h&min=6m": {"09:35 09:45", "09:15 09:30"},
		"last=1h&min=15m": {"09:15 09:30"}, "min=1h": {"10:00 09:00"}, "min=3660d": nil, "min=87840h": nil,
		"to=0000-01-01T00:00:00Z": nil, "to=0000-01-01T00:10:00Z": {"00:00 00:10"}, // RFC 3339 has no earlier year.
		"assignment_id=" + closed.String():               {"09:15 09:30"},
		"last=40m&assignment_id=" + closed.String():      {"09:20 09:30"},
		"last=20m&assignment_id=" + closed.String():      nil,
		"assignment_id=" + open.String():                 {last, "09:35 09:45"},
		"assignment_id=" + open.String() + "&min=00010m": {"09:35 09:45"},
	} {
		require.Equal(t, want, f.gaps(t, query), query)
		require.Equal(t, want, f.gaps(t, query+"&limit=1"), query)
	}
	for _, length := range []string{
		"", "m", "0m", "5", "-1h", "1w", "5M", "3661d", "87841h", "5270401m", "99999999999999999999d", "1.5h",
	} {
		f.get(t, gapsPath+"?min="+length).requireInvalid(t, "min")
	}
	f.get(t, gapsPath+"?metadata.a=b").requireInvalid(t, "metadata.a")
	f.get(t, gapsPath+"?assignment_id="+unknownID).requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
}

// TestGapCursor checks what a cursor keeps, and that late readings neither repeat nor skip a bucket.
func TestGapCursor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addGaps(t)
	assignment := testID(0xa5, 1)
	f.addAssignment(t, deviceID, assignment, start.Add(-time.Hour), nil)
	conformance.Covers(t, "A4.1", "decision 12 g", "decision 12 h", "decision 12 i")
	cursor := f.firstCursor(t, gapsPath+"?last=1h&min=10m&limit=1")
	for query, param := range map[string]string{
		"": "", "&min=10m": "", "&min=010m&last=60m": "", "&min=1h": "min", "&min=1h&last=2h": "min", "&last=2h&min=1h": "last",
	} {
		got := f.get(t, gapsPath+"?cursor="+cursor+query)
		if param != "" {
			got.requireInvalid(t, param)
			continue
		}
		require.Len(t, decode[list[gap]](t, got).Data, 1, query)
	}
	defaults := f.firstCursor(t, gapsPath+"?limit=1")
	f.get(t, gapsPath+"?cursor="+defaults+"&min=5m&last=24h").requireOK(t)

	// The first page ends at 09:55. Readings arrive before and after that, while time passes.
	conformance.Covers(t, "A0.3", "A4.3")
	first := decode[list[gap]](t, f.get(t, gapsPath+"?limit=1&assignment_id="+assignment.String()))
	require.Equal(t, start.Add(-5*time.Minute), first.Data[0].From)
	f.addReading(t, deviceID, start.Add(-5*time.Minute), 1)
	f.addReading(t, deviceID, start.Add(-40*time.Minute), 1)
	f.clock.advance(20 * time.Minute)
	require.Equal(t, []string{"09:35 09:45", "09:25 09:30", "09:15 09:20", "09:05 09:10"},
		f.gaps(t, "limit=3&cursor="+url.QueryEscape(*first.NextCursor)))
	require.Equal(t, "10:00 10:20", f.gaps(t, "assignment_id="+assignment.String())[0], "an open assignment ends now")

	f.exec(t, `DELETE FROM assignments`)
	f.exec(t, `DELETE FROM devices`)
	f.get(t, gapsPath+"?cursor="+cursor).requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
}
