package api

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// The time until an upload is visible is measured once per device and upload, and only between two snapshots that
// follow one another closely.
func TestVisibleLag(t *testing.T) {
	t.Parallel()
	s, _ := newTestSnapshots(t, time.Second)
	arrived := time.Now().Add(-3 * time.Second)
	s.now = func() time.Time { return arrived.Add(3 * time.Second) }
	id, other := uuid.UUID{1}, uuid.UUID{2}
	snapshotOf := func(readAt time.Time, lastSeen *time.Time) *snapshot {
		device := func(id uuid.UUID, seen *time.Time) roomsensor.CurrentDevice {
			return roomsensor.CurrentDevice{Device: roomsensor.Device{ID: id, LastSeenAt: seen}}
		}
		return &snapshot{readAt: readAt, devices: []roomsensor.CurrentDevice{device(id, lastSeen), device(other, nil)}}
	}
	before := snapshotOf(arrived, nil)
	for _, next := range []*snapshot{
		snapshotOf(arrived.Add(time.Second), nil),
		snapshotOf(arrived.Add(maxObservedAge+1), &arrived), // Nobody asked for longer.
		{readAt: arrived, partial: true},
	} {
		s.observe(before, next)
	}
	s.observe(nil, snapshotOf(arrived, &arrived))
	require.Zero(t, histogramOf(t, s.metrics.visibleLag).GetSampleCount())
	after := snapshotOf(arrived.Add(time.Second), &arrived)
	s.observe(before, after)
	s.observe(after, snapshotOf(arrived.Add(2*time.Second), &arrived))
	got := histogramOf(t, s.metrics.visibleLag)
	require.EqualValues(t, 1, got.GetSampleCount())
	require.InDelta(t, 3, got.GetSampleSum(), 1e-9)
}

func histogramOf(t *testing.T, h prometheus.Histogram) *dto.Histogram {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.Write(&m))
	return m.GetHistogram()
}
