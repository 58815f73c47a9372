package csvimport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/csvimport"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

var start = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

func line(unit string, at time.Time, metrics ...roomsensor.Metric) *csvimport.Line {
	l := &csvimport.Line{HardwareID: unit, Measurement: roomsensor.Measurement{MeasuredAt: at}}
	for _, m := range metrics {
		l.Values.Set(m, 12.345678)
	}
	return l
}

// TestBatch checks that every upload and request is within the limits of a receiver and of a worker, and that no
// reading is lost.
func TestBatch(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.1")
	for name, tc := range map[string]struct {
		units, metrics int
		step           time.Duration
	}{
		"one unit":       {1, roomsensor.MetricCount, time.Second},
		"one metric":     {1, 1, time.Second},
		"a day per line": {1, 1, 24 * time.Hour},
		"a unit each":    {60_000, 1, time.Microsecond},
		"back in time":   {7, 2, -time.Minute},
	} {
		var b csvimport.Batch
		sent := 0
		check := func() {
			lines := b.Take()
			require.LessOrEqual(t, len(lines), 8<<20, name)
			uploads := bytes.Split(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))
			require.LessOrEqual(t, len(uploads), 50_000, name)
			for _, text := range uploads {
				require.LessOrEqual(t, len(text), roomsensor.MaxUploadBytes, name)
				var u struct {
					Readings []struct {
						MeasuredAt time.Time `json:"measured_at"`
					} `json:"readings"`
				}
				require.NoError(t, json.Unmarshal(text, &u))
				require.LessOrEqual(t, len(u.Readings), roomsensor.MaxUploadReadings, name)
				days := u.Readings[0].MeasuredAt.Sub(u.Readings[len(u.Readings)-1].MeasuredAt).Abs() / (24 * time.Hour)
				require.Less(t, int(days)+1, roomsensor.MaxNewChunks, name)
				sent += len(u.Readings)
			}
		}
		const n = 70_000
		for i := range n {
			l := line(fmt.Sprintf("dev:%d", i%tc.units), start.Add(time.Duration(i)*tc.step), roomsensor.Metrics[:tc.metrics]...)
			if !b.Add(l) {
				check()
				require.True(t, b.Add(l), name)
			}
		}
		check()
		require.Equal(t, n, sent, name)
		require.Empty(t, b.Take(), name)
	}
	var b csvimport.Batch
	b.Add(line("dev:2", start, roomsensor.CO2, roomsensor.Sound))
	b.Add(line("dev:1", start.Add(time.Millisecond), roomsensor.Lux))
	b.Add(line("dev:2", start, roomsensor.CO2))
	require.Equal(t, []string{
		`{"hardware_id":"dev:2","readings":[{"measured_at":"2020-01-01T00:00:00Z","co2_ppm":12.345678,"spl_db":12.345678},` +
			`{"measured_at":"2020-01-01T00:00:00Z","co2_ppm":12.345678}]}` + "\n",
		`{"hardware_id":"dev:1","readings":[{"measured_at":"2020-01-01T00:00:00.001Z","lux":12.345678}]}` + "\n",
	}, slices.Collect(strings.Lines(string(b.Take()))))
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var s csvimport.Summary
	for i := range csvimport.MaxUnits {
		require.NoError(t, s.Add(line(fmt.Sprintf("dev:%06d", i), start, roomsensor.CO2)))
	}
	require.NoError(t, s.Add(line("dev:000000", start.Add(-time.Hour), roomsensor.CO2)))
	require.NoError(t, s.Add(line("dev:0", start)))
	require.NoError(t, s.Add(&csvimport.Line{Problem: "x"}))
	require.ErrorContains(t, s.Add(line("dev:0", start, roomsensor.CO2)), "more than 100000 units")
	require.Equal(t, []int{csvimport.MaxUnits + 1, 1, 1}, []int{s.Readings, s.WithoutValues, s.BadLines})
	units := s.Units()
	require.Len(t, units, csvimport.MaxUnits)
	require.Equal(t, csvimport.Unit{HardwareID: "dev:000000", Readings: 2, From: start.Add(-time.Hour), To: start}, units[0])
	require.JSONEq(t, `{"hardware_id":"dev:000000","readings":[{"measured_at":"2019-12-31T23:00:00Z","co2_ppm":null},`+
		`{"measured_at":"2020-01-01T00:00:00Z","co2_ppm":null}]}`, string(units[0].AppendTrial(nil)))
}
