package workload

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/bar"
	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
)

// few are forty devices, of whose readings every second lacks a metric.
func few() *suite {
	f := &fleet.Fleet{Seed: 1, Devices: 40, Deep: 40, Days: 5, Recent: 5, Gaps: 2}
	f.Until = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	return &suite{fleet: f}
}

func TestLinesHoldEveryReadingOnce(t *testing.T) {
	t.Parallel()
	s := few()
	w := roomsensor.Window{From: s.fleet.Until.Add(-day), To: s.fleet.Until}
	bodies, rows := s.lines(w, s.fleet.Devices)
	require.Equal(t, s.fleet.Rows(w.From, w.To), rows)
	require.Len(t, bodies, 2)
	require.Equal(t, linesOfABody, bytes.Count(bodies[0], []byte("\n")))

	told := map[string]bool{}
	for line := range bytes.Lines(bytes.Join(bodies, nil)) {
		told[string(line)] = true
	}
	require.Len(t, told, rows)
	last := s.fleet.Reading(39, w.To.Add(-roomsensor.BucketLength))
	require.Contains(t, told,
		string(bar.AppendLine(nil, s.fleet.DeviceID(39), w.To.Add(-roomsensor.BucketLength), &last.Values)))
}

// A peer that keeps metrics apart may show an older value where the newest reading lacks one, but only the last one.
func TestTheNewestMayLackAMetricOrShowTheOneBefore(t *testing.T) {
	t.Parallel()
	s := few()
	r := &rival{suite: s}
	newest := s.fleet.Until.Add(-roomsensor.BucketLength)
	rows := s.measured(firstOf(s.fleet.Devices), roomsensor.Window{From: newest, To: s.fleet.Until})
	require.Less(t, len(rows), s.fleet.Devices*len(roomsensor.Metrics), "some lack a metric")
	require.Equal(t, rows, r.newest(rows))

	shown := bar.Cells{}
	for at := s.fleet.RecentFrom(); at.Before(s.fleet.Until); at = at.Add(roomsensor.BucketLength) {
		w := roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)}
		for cell, x := range s.measured(firstOf(s.fleet.Devices), w) {
			cell.At = newest.Unix()
			shown[cell] = x
		}
	}
	require.Len(t, shown, s.fleet.Devices*len(roomsensor.Metrics))
	require.Equal(t, shown, r.newest(shown))
	for cell := range shown {
		wrong := maps.Clone(shown)
		wrong[cell]++
		require.NotEqual(t, wrong, r.newest(wrong), cell)
	}
}
