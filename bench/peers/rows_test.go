package main

import (
	"bytes"
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
