package main

import (
	"bytes"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/fleet"
	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
)

// smallFleet has forty devices. Every second reading lacks a metric.
func smallFleet() *comparison {
	s := &workload.Suite{}
	s.Fleet = fleet.Fleet{
		Seed: 1, Devices: 40, Deep: 40, Days: 5, Recent: 5, Gaps: 2, Until: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
	return &comparison{Suite: s}
}

func TestLines(t *testing.T) {
	t.Parallel()
	s := smallFleet()
	w := roomsensor.Window{From: s.Fleet.Until.Add(-workload.UploadPart), To: s.Fleet.Until}
	bodies, rows := s.lines(w, s.Fleet.Devices)
	require.Equal(t, s.Fleet.Rows(w.From, w.To), rows)
	require.Len(t, bodies, 2)
	require.Equal(t, linesPerBody, bytes.Count(bodies[0], []byte("\n")))

	seen := map[string]bool{}
	for line := range bytes.Lines(bytes.Join(bodies, nil)) {
		seen[string(line)] = true
	}
	require.Len(t, seen, rows)
	last := s.Fleet.Reading(39, w.To.Add(-roomsensor.BucketLength))
	require.Contains(t, seen,
		string(AppendLine(nil, s.Fleet.DeviceID(39), w.To.Add(-roomsensor.BucketLength), &last.Values)))
}

// TestNewest accepts the last value of a metric that the newest reading lacks, and no older one.
func TestNewest(t *testing.T) {
	t.Parallel()
	s := smallFleet()
	newest := s.Fleet.Until.Add(-roomsensor.BucketLength)
	rows := s.measured(firstOf(s.Fleet.Devices), roomsensor.Window{From: newest, To: s.Fleet.Until})
	require.Less(t, len(rows), s.Fleet.Devices*len(roomsensor.Metrics), "some lack a metric")
	require.Equal(t, rows, s.newest(rows))

	shown := Cells{}
	for at := s.Fleet.RecentFrom(); at.Before(s.Fleet.Until); at = at.Add(roomsensor.BucketLength) {
		w := roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)}
		for cell, x := range s.measured(firstOf(s.Fleet.Devices), w) {
			cell.At = newest.Unix()
			shown[cell] = x
		}
	}
	require.Len(t, shown, s.Fleet.Devices*len(roomsensor.Metrics))
	require.Equal(t, shown, s.newest(shown))
	for cell := range shown {
		wrong := maps.Clone(shown)
		wrong[cell]++
		require.NotEqual(t, wrong, s.newest(wrong), cell)
	}
}

// TestAggregated accepts means that differ in the last digits, and nothing else.
func TestAggregated(t *testing.T) {
	t.Parallel()
	s := smallFleet()
	a := &workload.Aggregation{
		Devices: []int{0, 39}, Bucket: time.Hour,
		Window: roomsensor.Window{From: s.Fleet.Until.Add(-2 * time.Hour), To: s.Fleet.Until},
	}
	exact := s.aggregated(a)(nil)
	require.Len(t, exact, 4*2*2*len(roomsensor.Metrics))
	for cell, x := range exact {
		got := maps.Clone(exact)
		got[cell] = math.Nextafter32(x, 1e6)
		require.Equal(t, cell.Of == Mean, maps.Equal(got, s.aggregated(a)(got)), cell)
		got[cell] = x * 1.001
		require.NotEqual(t, got, s.aggregated(a)(got), cell)
	}
}

func TestCovered(t *testing.T) {
	t.Parallel()
	s := smallFleet()
	cells := s.covered()
	require.Len(t, cells, s.Fleet.Devices*(len(roomsensor.Metrics)+2))
	id, w := s.Fleet.DeviceID(7), s.CoverageWindow()
	require.InDelta(t, 288, cells[Cell{id, 0, roomsensor.CO2, Count}], 0)
	sound := cells[Cell{id, 0, roomsensor.Sound, Count}]
	require.True(t, sound > 100 && sound < 188, "half of the readings lack it: %v", sound)
	require.Contains(t, cells, Cell{id, w.From.Unix(), roomsensor.CO2, First})
	require.Contains(t, cells, Cell{id, w.To.Unix() - 300, roomsensor.CO2, Last})
}
