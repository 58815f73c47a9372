package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// TestAggregatesCSV compares exports with golden files: names that need quoting, nulls, a device without readings.
func TestAggregatesCSV(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A2.1", "A2.2", "A2.4", "decision 27 h")
	f := setup(t)
	f.addMetrics(t)
	f.addDevice(t, teamID, testID(0xde, 2), "dev:2")
	f.addDevice(t, teamID, testID(0xde, 3), "dev:3")
	f.nameDevice(t, deviceID, `=Gym, "A"`)
	f.addReading(t, testID(0xde, 2), start.Add(-65*time.Minute), 400)
	for name, path := range map[string]string{
		"aggregates.csv.golden":         "/aggregates.csv?interval=1h&last=3h",
		"aggregates_fill.csv.golden":    "/aggregates.csv?interval=1h&last=2h&fill=true&metrics=temp_c",
		"aggregates_metrics.csv.golden": "/aggregates.csv?interval=1d&time_zone=Europe/Berlin&metrics=lux,co2_ppm&fill=false",
		"aggregates_empty.csv.golden":   "/aggregates.csv?interval=1h&last=1m&metrics=lux",
	} {
		got := f.get(t, path).requireOK(t)
		requireGolden(t, name, got.body)
		require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
		require.Equal(t, strconv.Itoa(len(got.records(t))-1), got.header.Get("X-Row-Count"), name)
		require.Equal(t, []string{"no-store"}, got.header.Values("Cache-Control"))
		require.Equal(t, []string{"no-referrer"}, got.header.Values("Referrer-Policy"))
	}
	require.Equal(t, `attachment; filename="aggregates_20261021T100000Z_20261120T100000Z.csv"`,
		f.head(t, "/aggregates.csv?interval=1d").header.Get("Content-Disposition"))
	for _, fill := range []string{"", "1", "True", "yes"} {
		f.get(t, "/aggregates.csv?interval=1d&fill="+fill).requireInvalid(t, "fill")
	}
}

// TestAggregatesCSVValues checks that the lines of an export have the values of the list of each device (A2.4).
func TestAggregatesCSVValues(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A2.4")
	f := setup(t)
	f.addMetrics(t)
	items := f.items(t, aggregatesPath+"?interval=1h&last=24h")
	rows := f.get(t, "/aggregates.csv?interval=1h&fill=true").records(t)
	require.Len(t, rows, len(items)+1)
	for i, row := range rows[1:] {
		item := items[len(items)-1-i]
		require.Equal(t, []any{item["bucket_at"], item["bucket_end"]}, []any{row[0], row[1]})
		require.Equal(t, []string{printNumber(item["expected"]), printNumber(item["present"])}, row[4:6])
		for m, metric := range roomsensor.Metrics {
			stat := item[metric.String()].(map[string]any)
			for k, name := range []string{"min", "max", "mean", "count"} {
				require.Equal(t, rows[0][6+4*m+k], metric.String()+"_"+name)
				require.Equal(t, printNumber(stat[name]), row[6+4*m+k], "%s %s %s", row[0], metric, name)
			}
		}
	}
}

// printNumber prints a number of a JSON body as in CSV.
func printNumber(x any) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(x.(float64), 'f', -1, 32)
}

// TestAggregatesCSVSelection checks which devices have lines (A2.1).
func TestAggregatesCSVSelection(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A2.1", "A0.1")
	f := setup(t)
	second := testID(0xde, 2)
	f.addDevice(t, teamID, second, "dev:2")
	f.exec(t, `UPDATE devices SET metadata = '{"site":"north"}' WHERE id = $1`, second)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	f.addReading(t, second, start.Add(-time.Hour), 2)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-30*time.Minute), nil)
	assigned := "&assignment_id=" + testID(0xa5, 1).String()
	for query, want := range map[string]string{
		"":                            "1 2",
		"&devices=" + second.String(): "2",
		"&metadata.site=north":        "2",
		"&metadata.site=south":        "",
		"&metadata.site=north&devices=" + deviceID.String(): "",
		assigned:                "",
		assigned + "&last=3h":   "",
		assigned + "&fill=true": " ",
		assigned + "&fill=true&devices=" + second.String(): "",
	} {
		var co2 []string
		for _, record := range f.get(t, "/aggregates.csv?interval=1h&metrics=co2_ppm"+query).records(t)[1:] {
			co2 = append(co2, record[6])
		}
		if query == assigned+"&fill=true" {
			require.Equal(t, []string{""}, co2, "the hour of the assignment")
			continue
		}
		require.Equal(t, want, strings.Join(co2, " "), query)
	}
	f.get(t, "/aggregates.csv?interval=1h&devices="+unknownID).requireError(t, roomsensor.CodeDeviceNotFound, "devices")
	f.get(t, "/aggregates.csv?interval=1h"+strings.Replace(assigned, "a5", "99", 1)).requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	key := f.newKey(t, roomsensor.ScopeRead)
	f.get(t, "/aggregates.csv?interval=1h&key="+key, withoutKey).requireOK(t)
	f.get(t, aggregatesPath+"?interval=1h&key="+key, withoutKey).requireError(t, roomsensor.CodeAPIKeyMissing, "")
}

// TestAggregatesCSVLimit checks that 250,000 lines are allowed, and the message about more (A2.3).
func TestAggregatesCSVLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A2.3")
	f := setup(t)
	f.addDevices(t, 1000)
	for query, want := range map[string]string{
		"interval=1h&fill=true&last=250h":  "",
		"interval=1h&fill=true&last=251h":  "251000 lines",
		"interval=1d&fill=true&last=1000d": "more than 1,000,000 lines", // 1,001 dates.
		"interval=1d&last=3660d":           "",
	} {
		got := f.head(t, "/aggregates.csv?"+query)
		if want == "" {
			got.requireOK(t)
			continue
		}
		require.Equal(t, http.StatusRequestEntityTooLarge, got.status, query)
		require.Empty(t, got.header.Get("X-Row-Count"))
		got = f.get(t, "/aggregates.csv?"+query)
		got.requireError(t, roomsensor.CodeCSVTooLarge, "")
		require.Contains(t, got.message(t), want)
		require.Contains(t, got.message(t), "at most 250000 are allowed. Ask for a shorter window")
		require.Contains(t, got.message(t), "leave out fill")
	}
}
