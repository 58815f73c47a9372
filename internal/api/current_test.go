package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// snapshotItem is what the answer says of the fixture's device.
type snapshotItem struct {
	Latest  *reading                   `json:"latest"`
	Last24h map[string]json.RawMessage `json:"last_24h"`
}

func (f *fixture) snapshotItem(t *testing.T) snapshotItem {
	t.Helper()
	page := decode[list[snapshotItem]](t, f.get(t, "/devices/current"))
	require.Len(t, page.Data, 1)
	return page.Data[0]
}

// Fields stand in this order, and there are no others.
func TestFieldsOfCurrent(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.1", "decision 17.3", "decision 17.4", "decision 17.6")
	f := setup(t)
	none := `"%s":{"min":null,"max":null,"mean":null,"count":0}`
	sums := make([]string, roomsensor.MetricCount)
	for m := range sums {
		sums[m] = fmt.Sprintf(none, roomsensor.Metric(m))
	}
	want := `{"data":[{"device_id":"` + deviceID.String() + `","hardware_id":"dev:1","display_name":null,"metadata":{},"status":"offline",` +
		`"last_seen_at":null,"signal":{"rssi_dbm":null,"bars":null},"active_assignment":null,"latest":null,` +
		`"last_24h":{"from":"2026-11-19T11:00:00Z",` + strings.Join(sums, ",") + `}}],"next_cursor":null}`
	require.Equal(t, want, string(f.get(t, "/devices/current").body))
}

// What arrives last is not the latest, and what is older than a day may be.
func TestLatestIsByBucket(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.2", "decision 17.3")
	f := setup(t)
	require.Nil(t, f.snapshotItem(t).Latest)
	latest := start.Add(-400 * day)
	for _, tc := range []struct {
		at    time.Duration
		moves bool
	}{
		{-400 * day, true},
		{-500 * day, false},
		{-3 * day, true},
		{-4 * day, false},
		{-time.Hour, true},
		{-2 * time.Hour, false},
		{-5 * time.Minute, true},
		{-10 * time.Minute, false},
		{5 * time.Minute, true},
		{0, false},
	} {
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, ingested_at) VALUES ($1, $2, now())`, deviceID, start.Add(tc.at))
		if tc.moves {
			latest = start.Add(tc.at)
		}
		require.Equal(t, roomsensor.FormatTime(latest), f.snapshotItem(t).Latest.BucketAt, "%s", tc.at)
	}
	require.Nil(t, f.snapshotItem(t).Latest.CO2, "a reading without any value is one")
}

// The hours are those of the clock, and a reading of the present hour counts also if it is of a minute to come.
func TestHoursOfTheSummary(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.4", "decision 17.8")
	f := setup(t)
	const bucket = roomsensor.BucketLength
	for _, tc := range []struct {
		at     time.Duration // of a reading, past 10:00
		counts bool          // at 10:00
	}{
		{-23 * time.Hour, true},
		{-23*time.Hour - bucket, false},
		{-24 * time.Hour, false},
		{-bucket, true},
		{0, true},
		{bucket, true},
		{time.Hour - bucket, true},
		{time.Hour, false},
		{2 * time.Hour, false},
	} {
		f.exec(t, `DELETE FROM readings`)
		f.addReading(t, deviceID, start.Add(tc.at), 7)
		want := `{"min":null,"max":null,"mean":null,"count":0}`
		if tc.counts {
			want = `{"min":7,"max":7,"mean":7,"count":1}`
		}
		for _, now := range []time.Duration{0, 30 * time.Minute, time.Hour - 1} {
			f.clock.advance(now)
			sums := f.snapshotItem(t).Last24h
			require.JSONEq(t, want, string(sums["co2_ppm"]), "%s at %s", tc.at, now)
			require.JSONEq(t, `"2026-11-19T11:00:00Z"`, string(sums["from"]))
			f.clock.advance(-now)
		}
	}
	f.clock.advance(time.Hour)
	require.JSONEq(t, `"2026-11-19T12:00:00Z"`, string(f.snapshotItem(t).Last24h["from"]))
}

// A sum in 32 bits would lose the ones beside 16777216 and the last digit of the temperatures, and a mean of means the
// weights.
func TestMeansAreOf64Bits(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.6", "decision 17.7")
	f := setup(t)
	for i, row := range []string{"16777216, 0.1, NULL, 1e-30", "1, 0.4, NULL, 3e-30", "1, 0.8, 5, NULL", "0, NULL, 5, NULL"} {
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux) VALUES ($1, $2, `+row+`)`,
			deviceID, start.Add(-time.Duration(i*40)*time.Minute))
	}
	sums := f.snapshotItem(t).Last24h
	for metric, want := range map[string]string{
		"co2_ppm":      `{"min":0,"max":16777216,"mean":4194304.5,"count":4}`,
		"temp_c":       `{"min":0.1,"max":0.8,"mean":0.43333334,"count":3}`,
		"humidity_pct": `{"min":5,"max":5,"mean":5,"count":2}`,
		"lux":          `{"min":0.000000000000000000000000000001,"max":0.000000000000000000000000000003,"mean":0.000000000000000000000000000002,"count":2}`,
		"spl_db":       `{"min":null,"max":null,"mean":null,"count":0}`,
	} {
		require.Equal(t, want, string(sums[metric]), metric)
	}
}

// With the settings of the service: the sums of hours that are over are kept for a while.
func TestLateReadingCountsWithinAMinute(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.8", "decision 17.9")
	f := setup(t)
	kept, _ := f.kept(t, 0)
	count := func(n int) func() bool {
		want := fmt.Sprintf(`"count":%d}`, n)
		return func() bool { return strings.Contains(string(kept.snapshotItem(t).Last24h["co2_ppm"]), want) }
	}
	require.True(t, count(0)())
	f.addReading(t, deviceID, start, 7)
	require.Eventually(t, count(1), 30*time.Second, 100*time.Millisecond, "of the current hour")
	f.addReading(t, deviceID, start.Add(-3*time.Hour), 8)
	require.Len(t, decode[list[reading]](t, f.get(t, readingsPath)).Data, 1, "it can be read")
	require.Eventually(t, count(2), time.Minute, 500*time.Millisecond, "of an hour that is over")
}
