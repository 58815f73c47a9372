package ingest

import (
	"bytes"
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Nothing that arrived is dropped silently (decision 41).
func TestRejectsThatAreDroppedForRoomAreLoggedAndCounted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var logged bytes.Buffer
	store := newMemoryStore(nil)
	store.trim = func(mostBytes int64) int64 {
		require.Equal(t, int64(maxRejects), mostBytes)
		cancel()
		return 3
	}
	w := NewWorker(WorkerConfig{Store: store, Log: zerolog.New(&logged), Metrics: prometheus.NewRegistry()})
	w.trim(ctx)
	require.InDelta(t, 3, measured(t, w.metrics.dropped), 0)
	require.Contains(t, logged.String(), `"level":"warn","rejects":3`)
}
