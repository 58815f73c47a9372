package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// queueGauges are the metrics of the queue that a registry tells, without their common prefix.
func queueGauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	const prefix = "roomsensor_queue_"
	told := map[string]float64{}
	for _, family := range families {
		if name := family.GetName(); len(name) > len(prefix) && name[:len(prefix)] == prefix {
			require.Len(t, family.GetMetric(), 1)
			told[name[len(prefix):]] = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return told
}

// What was seen of the queue is told for 15 seconds, then only when it was seen.
func TestMetricsOfTheQueueGoWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		m := newQueueMetrics(registry)
		require.Equal(t, map[string]float64{"observed_timestamp_seconds": 0}, queueGauges(t, registry))

		now := time.Now()
		m.note(&queue.State{Waiting: 7, Unacknowledged: 3, Oldest: now.Add(-90 * time.Second), Bytes: 512, MaxBytes: 1024}, now)
		whole := map[string]float64{
			"observed_timestamp_seconds": float64(now.Unix()),
			"waiting_messages":           7, "unacknowledged_messages": 3, "oldest_unacknowledged_seconds": 90,
			"stream_bytes": 512, "stream_max_bytes": 1024,
		}
		pass(15*time.Second - 1)
		require.Equal(t, whole, queueGauges(t, registry))
		pass(1)
		require.Equal(t, map[string]float64{"observed_timestamp_seconds": float64(now.Unix())}, queueGauges(t, registry))

		m.note(&queue.State{MaxBytes: -1}, time.Now())
		require.Equal(t, map[string]float64{
			"observed_timestamp_seconds": float64(time.Now().Unix()),
			"waiting_messages":           0, "unacknowledged_messages": 0, "oldest_unacknowledged_seconds": 0,
			"stream_bytes": 0, "stream_max_bytes": 0,
		}, queueGauges(t, registry))
	})
}

// A worker looks at the real queue, and tells when that was.
func TestAWorkerTellsWhatTheQueueHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := prometheus.NewRegistry()
	w := NewWorker(WorkerConfig{Queue: b.queue, Store: newMemoryStore(nil), Log: zerolog.Nop(), Metrics: registry})
	b.publishText(t, "dev:1", "{}")
	b.publishText(t, "dev:2", "{}")
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.watch(ctx)
	}()
	require.Eventually(t, func() bool { // The queue counts what waits a moment after it has stored it.
		return queueGauges(t, registry)["waiting_messages"] == 2
	}, patience, time.Millisecond)
	cancel()
	<-done
	told := queueGauges(t, registry)
	require.Zero(t, told["unacknowledged_messages"])
	require.InDelta(t, time.Now().Unix(), told["observed_timestamp_seconds"], patience.Seconds())
	require.Positive(t, told["oldest_unacknowledged_seconds"])
	require.Less(t, told["oldest_unacknowledged_seconds"], patience.Seconds())
	require.Positive(t, told["stream_bytes"])
	require.InDelta(t, 256<<20, told["stream_max_bytes"], 0)
}
