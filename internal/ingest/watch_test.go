package ingest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// Nothing that arrived is dropped silently (decision 41).
func TestRejectsThatAreDroppedAreLoggedAndCounted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var logged bytes.Buffer
	limits := roomsensor.RejectLimits{Keep: time.Hour, MaxBytes: 1 << 20}
	store := newMemoryStore(nil)
	store.trim = func(given roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
		require.Equal(t, limits, given)
		cancel()
		return roomsensor.RejectTrim{Aged: 2, Crowded: 3, Kept: 7, Bytes: 512}, nil
	}
	w := NewWorker(WorkerConfig{Store: store, Log: zerolog.New(&logged), Metrics: prometheus.NewRegistry(), Rejects: limits})
	w.trim(ctx)
	require.InDelta(t, 2, measured(t, w.metrics.dropped.WithLabelValues(causeAge)), 0)
	require.InDelta(t, 3, measured(t, w.metrics.dropped.WithLabelValues(causeSize)), 0)
	require.InDelta(t, 7, measured(t, w.metrics.rejectsKept), 0)
	require.InDelta(t, 512, measured(t, w.metrics.rejectsBytes), 0)
	require.InDelta(t, 1<<20, measured(t, w.metrics.rejectsMaxBytes), 0)
	require.Contains(t, logged.String(), `"level":"info","rejects":2`)
	require.Contains(t, logged.String(), `"level":"warn","rejects":3`)
}

// What went before a failure is told too.
func TestRejectsThatWentBeforeAFailureAreCounted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store := newMemoryStore(nil)
	store.trim = func(given roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
		require.Equal(t, DefaultRejectLimits, given)
		cancel()
		return roomsensor.RejectTrim{Aged: 2}, errors.New("the database is away")
	}
	w := NewWorker(WorkerConfig{Store: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	w.trim(ctx)
	require.InDelta(t, 2, measured(t, w.metrics.dropped.WithLabelValues(causeAge)), 0)
}
