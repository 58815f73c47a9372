package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// addMetrics stores readings with several metrics: two hours of the day before start, with a gap, nulls, and a reading
// without any value.
func (f *fixture) addMetrics(t *testing.T) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, lux) VALUES
		($1, '2026-11-20 08:55Z', 612, 21.4, 0), ($1, '2026-11-20 09:00Z', 613, -0.1, NULL), ($1, '2026-11-20 09:10Z', 615, 0.2, NULL),
		($1, '2026-11-20 09:55Z', NULL, NULL, NULL), ($1, '2026-11-20 10:00Z', 1000, 30, 1)`, deviceID)
}

// TestAggregates compares an item with values, one without, and the selection of metrics with a golden file.
func TestAggregates(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.4", "A1.5", "A1.6", "A1.7")
	f := setup(t)
	f.addMetrics(t)
	f.clock.advance(7 * time.Minute)
	requireGolden(t, "aggregates.json.golden", f.get(t, aggregatesPath+"?interval=1h&last=3h").requireOK(t).body)
	requireGolden(t, "aggregates_metrics.json.golden",
		f.get(t, aggregatesPath+"?interval=1d&time_zone=Asia/Kathmandu&metrics=lux,co2_ppm&last=2d").requireOK(t).body)
	for _, metrics := range []string{"", ",", "lux,", "lux,lux", "co2", "Lux", "lux,valid_mask"} {
		f.get(t, aggregatesPath+"?interval=1h&metrics="+metrics).requireInvalid(t, "metrics")
	}
}

// buckets returns the edges of the buckets of a page as "bucket_at bucket_end".
func (f *fixture) buckets(t *testing.T, query string) (edges []string) {
	t.Helper()
	for _, i := range f.items(t, aggregatesPath+"?"+query) {
		edges = append(edges, fmt.Sprint(i["bucket_at"], " ", i["bucket_end"]))
	}
	return edges
}

// TestAggregatesParameters checks interval, time_zone and the windows (A1.1 to A1.3).
func TestAggregatesParameters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("interval", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A1.1")
		for _, path := range []string{aggregatesPath, "/aggregates.csv"} {
			for _, query := range []string{"", "?interval=", "?interval=1w", "?interval=1D", "?interval=60m", "?last=1h"} {
				f.get(t, path+query).requireInvalid(t, "interval")
			}
		}
	})
	t.Run("time zone", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A1.3")
		const lastHour = "2026-11-20T09:00:00Z 2026-11-20T10:00:00Z"
		for query, newest := range map[string]string{
			"interval=1d":                            "2026-11-20T00:00:00Z 2026-11-21T00:00:00Z",
			"interval=1d&time_zone=UTC":              "2026-11-20T00:00:00Z 2026-11-21T00:00:00Z",
			"interval=1d&time_zone=Europe/Berlin":    "2026-11-19T23:00:00Z 2026-11-20T23:00:00Z",
			"interval=1d&time_zone=Asia%2FKathmandu": "2026-11-19T18:15:00Z 2026-11-20T18:15:00Z",
			"interval=1h":                            lastHour,
			"interval=1h&time_zone=Asia/Kathmandu":   lastHour,
			"interval=1d&time_zone=America/New_York&to=2026-11-01T12:00:00Z":    "2026-11-01T04:00:00Z 2026-11-02T05:00:00Z",
			"interval=1d&time_zone=Europe/Berlin&to=2026-03-29T12:00:00Z":       "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z",
			"interval=1d&time_zone=Australia/Lord_Howe&to=2026-04-05T03:00:00Z": "2026-04-04T13:00:00Z 2026-04-05T13:30:00Z",
		} {
			require.Equal(t, newest, f.buckets(t, query)[0], query)
		}
		for _, zone := range []string{"", "+02:00", "Local", "local", "europe/berlin", "Europe/berlin", "CEST", "UTC+2", "../UTC", "Europe/Berlin ", "\x00", "EST5"} {
			for _, path := range []string{aggregatesPath, "/aggregates.csv"} {
				f.get(t, path+"?interval=1h&time_zone="+url.QueryEscape(zone)).requireInvalid(t, "time_zone")
			}
		}
		require.Contains(t, f.get(t, aggregatesPath+"?interval=1d&time_zone=europe/berlin").message(t), `Did you mean "Europe/Berlin"?`)
	})
	t.Run("windows", f.testAggregateWindows)
}

func (f *fixture) testAggregateWindows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.2")
	at := func(d time.Duration) string { return roomsensor.FormatTime(start.Add(-d)) }
	for query, want := range map[string]struct {
		items int
		first time.Duration // Age of the oldest bucket_at.
	}{
		"interval=1h":                         {24, 24 * time.Hour},
		"interval=1d":                         {31, 30*day + 10*time.Hour},
		"interval=1h&to=" + at(time.Hour):     {24, 25 * time.Hour},
		"interval=1d&to=" + at(10*time.Hour):  {30, 30*day + 10*time.Hour},
		"interval=1h&from=" + at(2*time.Hour): {2, 2 * time.Hour},
		"interval=1h&from=" + at(90*time.Minute) + "&to=" + at(-time.Minute): {3, 2 * time.Hour},
		"interval=1h&last=90m": {2, 2 * time.Hour},
		"interval=1d&last=1m":  {1, 10 * time.Hour},
	} {
		items := f.items(t, aggregatesPath+"?"+query)
		require.Len(t, items, want.items, query)
		require.Equal(t, at(want.first), items[len(items)-1]["bucket_at"], query)
	}
	for query, widest := range map[string]time.Duration{"interval=1h": 400 * day, "interval=1d": 3660 * day} {
		days := int(widest / day)
		for _, path := range []string{aggregatesPath, "/aggregates.csv"} {
			f.get(t, fmt.Sprintf("%s?%s&last=%dd", path, query, days)).requireOK(t)
			f.get(t, path+"?"+query+"&from="+at(widest)).requireOK(t)
			f.get(t, fmt.Sprintf("%s?%s&last=%dd", path, query, days+1)).requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
			f.get(t, path+"?"+query+"&from="+at(widest+time.Microsecond)).requireError(t, roomsensor.CodeTimeRangeTooWide, "from")
			require.Contains(t, f.get(t, path+"?"+query+"&last=9999d").message(t), fmt.Sprintf("wider than %d days", days))
			f.get(t, path+"?"+query+"&from=x").requireError(t, roomsensor.CodeTimeRangeInvalid, "from")
		}
	}
	// Every bucket has an expressible time, also at the ends of the calendar.
	for _, query := range []string{
		"to=0000-01-01T00:00:00Z", "to=0000-01-02T00:00:00Z", "from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59.999999Z",
	} {
		f.get(t, aggregatesPath+"?interval=1d&time_zone=Asia/Kathmandu&"+query).requireOK(t)
		f.get(t, "/aggregates.csv?interval=1d&fill=true&time_zone=America/New_York&"+query).requireOK(t)
	}
}

// TestAggregatesOfAnAssignment checks that the window of an open assignment ends now, and that an empty intersection has
// no items (A0.3, A1.2, A1.5).
func TestAggregatesOfAnAssignment(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A0.3", "A1.2", "A1.5")
	f := setup(t)
	closed, open := testID(0xa5, 1).String(), testID(0xa5, 2).String()
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-900*day), new(start.Add(-890*day)))
	f.addAssignment(t, deviceID, testID(0xa5, 2), start.Add(-90*time.Minute), nil)
	for query, items := range map[string]int{
		"interval=1h&assignment_id=" + closed:                       240,
		"interval=1h&last=1h&assignment_id=" + closed:               0,
		"interval=1h&assignment_id=" + open:                         2,
		"interval=1d&assignment_id=" + open:                         1,
		"interval=1h&last=400d&assignment_id=" + open:               2,
		"interval=1h&to=2026-11-20T20:00:00Z&assignment_id=" + open: 2,
	} {
		require.Len(t, f.items(t, aggregatesPath+"?"+query), items, query)
		require.Equal(t, fmt.Sprint(items), f.head(t, "/aggregates.csv?fill=true&"+query).header.Get("X-Row-Count"), query)
	}
	f.get(t, aggregatesPath+"?interval=1h&assignment_id="+unknownID).requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	f.get(t, strings.Replace(aggregatesPath, deviceID.String(), unknownID, 1)+"?interval=1h&last=1h&assignment_id="+closed).
		requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
	f.get(t, strings.Replace(aggregatesPath, deviceID.String(), unknownID, 1)+"?interval=1h").
		requireError(t, roomsensor.CodeDeviceNotFound, "device_id")
}

// TestAggregatesPages checks that pages of any size have every bucket once, the newest first, and that later pages keep
// the time of the first.
func TestAggregatesPages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.5", "A0.3")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-10*time.Hour), 130) // Of which ten are in the future.
	for query, sizes := range map[string][]int{
		"interval=1h&last=1001h":                                                 {1000, 1},
		"interval=1h&last=50h&limit=20":                                          {20, 20, 10},
		"interval=1d&last=3660d&time_zone=Asia/Tokyo":                            {1000, 1000, 1000, 661},
		"interval=1h&from=2026-11-20T09:30:00Z&to=2026-11-22T00:30:00Z&limit=30": {30, 10},
	} {
		var got []int
		var last string
		for _, page := range allPages[item](t, f, aggregatesPath, query) {
			got = append(got, len(page.Data))
			for _, i := range page.Data {
				if last != "" {
					require.Equal(t, last, i["bucket_end"], query)
				}
				last = i["bucket_at"].(string)
			}
		}
		requirePageSizes(t, sizes, got, query)
	}

	// The first page fixes the open bucket: it is not expected on later pages either, when it has ended.
	f.clock.advance(2 * time.Minute)
	const query = "?interval=1h&from=2026-11-20T08:00:00Z&to=2026-11-20T11:00:00Z&limit=1"
	whole := f.items(t, strings.Replace(aggregatesPath+query, "limit=1", "limit=3", 1))
	require.Equal(t, []any{0.0, 12.0}, []any{whole[0]["expected"], whole[1]["expected"]})
	cursor := f.firstCursor(t, aggregatesPath+query)
	f.clock.advance(3 * time.Hour)
	require.Equal(t, whole[1:], f.items(t, aggregatesPath+"?limit=2&cursor="+cursor))
}

// TestAggregatesBesideACursor checks which parameters may be sent with a cursor (A1.1, A0.3).
func TestAggregatesBesideACursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.1", "A0.3")
	f := setup(t)
	first := aggregatesPath + "?limit=2&interval=1d&metrics=lux,co2_ppm"
	cursor := f.firstCursor(t, first)
	for second, differs := range map[string]string{
		"": "", "interval=1d": "", "last=30d": "", "last=720h": "", "time_zone=UTC": "", "metrics=co2_ppm,lux": "", "limit=1000": "",
		"interval=1h": "interval", "last=24h": "last", "last=24h&interval=1h": "last", "time_zone=Europe/Berlin": "time_zone",
		"metrics=co2_ppm": "metrics", "metrics=lux,co2_ppm,temp_c": "metrics", "last=3660d": "last",
		"from=2026-11-20T08:00:00Z": "from", "assignment_id=" + unknownID: "assignment_id",
	} {
		got := f.get(t, aggregatesPath+"?cursor="+cursor+"&"+second)
		if differs == "" {
			got.requireOK(t)
			require.NotContains(t, string(got.body), "temp_c")
		} else {
			got.requireInvalid(t, differs)
		}
	}
	f.get(t, aggregatesPath+"?cursor="+cursor+"&interval=x").requireInvalid(t, "interval")
	f.get(t, readingsPath+"?cursor="+cursor).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
	f.get(t, aggregatesPath+"?cursor="+cursor, withKey(f.readKey)).requireError(t, roomsensor.CodeCursorTeamMismatch, "cursor")
	f.get(t, "/devices/"+unknownID+"/aggregates?cursor="+cursor).requireError(t, roomsensor.CodeCursorDeviceMismatch, "cursor")
}
