package worker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// Nothing that arrived is dropped silently (decision 41).
func TestTrimRejects(t *testing.T) {
	t.Parallel()
	limits := roomsensor.RejectLimits{Keep: time.Hour, MaxBytes: 1 << 20, TeamMaxBytes: 1 << 17}
	trim := func(t *testing.T, trimmed roomsensor.RejectTrim, err error) (m *metrics, log string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var buffer bytes.Buffer
		store := newMemoryStore(nil)
		w := New(Config{Store: store, Log: zerolog.New(&buffer).Hook(cancelHook{cancel}), Metrics: prometheus.NewRegistry(), Rejects: limits})
		store.trim = func(given roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
			require.Equal(t, limits, given)
			return trimmed, err
		}
		w.trimRejects(ctx)
		return w.metrics, buffer.String()
	}

	t.Run("logs and counts what was deleted", func(t *testing.T) {
		t.Parallel()
		m, log := trim(t, roomsensor.RejectTrim{Aged: 2, Evicted: 3, TeamEvicted: 4, Kept: 7, Bytes: 512}, nil)
		require.InDelta(t, 2, proctest.Value(t, m.dropped.WithLabelValues(causeAge)), 0)
		require.InDelta(t, 3, proctest.Value(t, m.dropped.WithLabelValues(causeSize)), 0)
		require.InDelta(t, 4, proctest.Value(t, m.dropped.WithLabelValues(causeTeamSize)), 0)
		require.InDelta(t, 7, proctest.Value(t, m.rejectsKept), 0)
		require.InDelta(t, 512, proctest.Value(t, m.rejectsBytes), 0)
		require.InDelta(t, 1<<20, proctest.Value(t, m.rejectsMaxBytes), 0)
		require.Contains(t, log, `"level":"info","rejects":2`)
		require.Contains(t, log, `"level":"warn","rejects":3`)
		require.Contains(t, log, `"level":"warn","rejects":4`)
	})

	t.Run("counts what was deleted before a failure, and logs the failure", func(t *testing.T) {
		t.Parallel()
		m, log := trim(t, roomsensor.RejectTrim{Aged: 2}, errors.New("the database is unavailable"))
		require.InDelta(t, 2, proctest.Value(t, m.dropped.WithLabelValues(causeAge)), 0)
		require.Contains(t, log, `{"level":"warn","error":"the database is unavailable"`)
	})
}

// TestPurgeFeed checks that a worker purges the change feed, and logs a failure.
func TestPurgeFeed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log bytes.Buffer
	store := newMemoryStore(nil)
	store.purgeFeed = func() error { return errors.New("the database is unavailable") }
	w := New(Config{Store: store, Log: zerolog.New(&log).Hook(cancelHook{cancel}), Metrics: prometheus.NewRegistry()})
	w.purgeFeed(ctx)
	require.Contains(t, log.String(), `{"level":"warn","error":"the database is unavailable"`)
}

func TestPurgeStream(t *testing.T) {
	t.Parallel()

	t.Run("deletes stored uploads that are old", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		for n := range 5 {
			e.publish(t, messageOf(f.second, readingAt(clock(10, 5*n, 0), "")))
		}
		_, stop := e.start(t, store)
		e.settle(t)
		stop()
		w, _ := e.start(t, store, func(w *Worker) { w.Keep = time.Nanosecond })
		require.Eventually(t, func() bool { return e.stream(t).Msgs == 0 }, patience, 10*time.Millisecond)
		require.Eventually(t, func() bool { return proctest.Value(t, w.metrics.purged) == 5 }, patience, time.Millisecond)
	})

	t.Run("logs a failure", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		e.server.Shutdown()
		require.Eventually(t, func() bool { return !e.js.Conn().IsConnected() }, patience, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log bytes.Buffer
		w := New(Config{Queue: e.queue, Store: newMemoryStore(nil), Log: zerolog.New(&log).Hook(cancelHook{cancel}), Metrics: prometheus.NewRegistry()})
		w.purgeStream(ctx)
		require.Contains(t, log.String(), `{"level":"warn","error":`)
	})
}

// cancelHook cancels at the first warning.
type cancelHook struct{ cancel func() }

func (h cancelHook) Run(_ *zerolog.Event, level zerolog.Level, _ string) {
	if level == zerolog.WarnLevel {
		h.cancel()
	}
}

// queueGauges returns the metrics of the queue, without their common prefix.
func queueGauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	return gaugesOf(t, registry, "roomsensor_queue_")
}

// gaugesOf returns the gauges with a prefix, without that prefix.
func gaugesOf(t *testing.T, registry *prometheus.Registry, prefix string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	gauges := map[string]float64{}
	for _, family := range families {
		name, found := strings.CutPrefix(family.GetName(), prefix)
		if found && family.GetType() == dto.MetricType_GAUGE {
			require.Len(t, family.GetMetric(), 1)
			gauges[name] = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return gauges
}

func TestQueueMetrics(t *testing.T) {
	t.Parallel()

	t.Run("disappear after 15 seconds, except for the time of the last read", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m := newQueueMetrics(registry, 7*24*time.Hour)
			require.Equal(t, map[string]float64{"observed_timestamp_seconds": 0, "stream_keep_seconds": 604800}, queueGauges(t, registry))

			now := time.Now()
			m.set(&queue.State{Waiting: 7, Unacknowledged: 3, Oldest: now.Add(-90 * time.Second), Kept: now.Add(-time.Hour), Bytes: 512, MaxBytes: 1024}, now)
			time.Sleep(15*time.Second - 1)
			require.Equal(t, map[string]float64{
				"observed_timestamp_seconds": float64(now.Unix()),
				"waiting_messages":           7, "unacknowledged_messages": 3, "oldest_unacknowledged_seconds": 90,
				"stream_bytes": 512, "stream_max_bytes": 1024, "stream_reach_seconds": 3600, "stream_keep_seconds": 604800,
			}, queueGauges(t, registry))
			time.Sleep(time.Nanosecond)
			require.Equal(t, map[string]float64{"observed_timestamp_seconds": float64(now.Unix()), "stream_keep_seconds": 604800}, queueGauges(t, registry))

			m.set(&queue.State{MaxBytes: -1}, time.Now())
			require.Equal(t, map[string]float64{
				"observed_timestamp_seconds": float64(time.Now().Unix()),
				"waiting_messages":           0, "unacknowledged_messages": 0, "oldest_unacknowledged_seconds": 0,
				"stream_bytes": 0, "stream_max_bytes": 0, "stream_reach_seconds": 0, "stream_keep_seconds": 604800,
			}, queueGauges(t, registry))
		})
	})

	t.Run("report the state of the real queue", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		e.publish(t, messageOf("dev:1"), messageOf("dev:2"))
		registry := prometheus.NewRegistry()
		w := New(Config{Queue: e.queue, Store: newMemoryStore(nil), Log: zerolog.Nop(), Metrics: registry})
		ctx, cancel := context.WithCancel(e.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.watchQueue(ctx)
		}()
		var gauges map[string]float64
		require.Eventually(t, func() bool { // The queue counts a message a moment after it stored it.
			gauges = queueGauges(t, registry)
			return gauges["waiting_messages"] == 2
		}, patience, time.Millisecond)
		cancel()
		<-done
		require.Positive(t, gauges["oldest_unacknowledged_seconds"])
		require.Positive(t, gauges["stream_bytes"])
		require.GreaterOrEqual(t, gauges["stream_reach_seconds"], gauges["oldest_unacknowledged_seconds"])
		require.InDelta(t, streamBytes, gauges["stream_max_bytes"], 0)
	})
}
