package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

// A message whose header does not hold one team id is rejected as a whole.
func TestWorkerRejectsInvalidTeam(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	f, store := inMemory()
	text := messageOf(f.second, readingAt(clock(8, 0, 0), "")).Text
	_, err := e.js.PublishMsg(e.ctx, &nats.Msg{
		Subject: "uploads.nobody." + f.second, Data: text,
	})
	require.NoError(t, err)
	e.start(t, store)
	e.settle(t)
	require.Equal(t, map[string]string{"1 not_parsable": string(text)}, store.snapshot().rejects)
	require.Empty(t, store.snapshot().rows)
}

func TestWorkerAcknowledgesAfterCommit(t *testing.T) {
	t.Parallel()
	f, store := inMemory()
	settled := &countedMessage{}
	store.before = func(context.Context, roomsensor.Batch) error {
		require.Zero(t, settled.acks.Load())
		return nil
	}
	d := deliveryOf(f.second, 1, readingAt(clock(8, 0, 0), ""))
	d.message = settled
	batches := make(chan *batch, 1)
	batches <- &batch{deliveries: []*delivery{d}}
	close(batches)
	w := New(Config{Queue: &queue.Queue{}, Store: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	w.writeBatches(t.Context(), t.Context(), batches)
	require.Equal(t, int64(1), settled.acks.Load())
}

func TestWorkerOutages(t *testing.T) {
	t.Parallel()

	t.Run("a worker continues after a restart of the queue and a lost consumer", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		e.start(t, store)
		upload := func(n int) queue.Message { return messageOf(f.second, readingAt(clock(10, 5*n, 0), "")) }
		e.publish(t, upload(0))
		e.settle(t)

		e.server.Restart(t)
		require.Eventually(t, func() bool {
			_, err := e.queue.Publish(e.ctx, []queue.Message{upload(1)})
			return err == nil
		}, patience, 50*time.Millisecond)
		// Not settle: the server saves acks with a delay, and a restart may lose the newest ones. The queue then delivers
		// the upload again, but only after AckWait.
		require.Eventually(t, func() bool { return len(store.snapshot().rows) == 2 }, patience, time.Millisecond)

		require.NoError(t, e.js.DeleteConsumer(e.ctx, queue.StreamName, queue.ConsumerName))
		e.publish(t, upload(2))
		require.Eventually(t, func() bool { return len(store.snapshot().rows) == 3 }, patience, time.Millisecond)
		// A consumer that is created while the server still deletes the old one may have its unacknowledged messages.
		e.settleWithin(t, queue.AckWait+patience)
	})

	t.Run("a worker without a queue stops", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		e.server.Shutdown()
		_, stop := e.start(t, newMemoryStore(nil), func(w *Worker) { w.StopTimeout = time.Second })
		stop()
	})
}

// A worker returns what it cannot store before its timeout to the queue.
func TestWorkerStopTimeout(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.extendAckWait(t)
	f, store := inMemory()
	stuck := make(chan struct{}, 1)
	store.before = func(ctx context.Context, _ roomsensor.Batch) error {
		stuck <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	e.publish(t, messageOf(f.second, readingAt(clock(8, 0, 0), "")))
	_, stop := e.start(t, store, func(w *Worker) { w.StopTimeout = 50 * time.Millisecond })
	<-stuck
	stop()
	require.Empty(t, store.snapshot().rows)

	store.before = nil
	e.start(t, store)
	e.settle(t)
	require.Len(t, store.snapshot().rows, 1)
}

// An upload that the database keeps refusing does not hold up the queue: it is parked, and everything is settled.
func TestWorkerParks(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	f, store := inMemory()
	bad := clock(10, 10, 0)
	store.refuseAt(bad, roomsensor.ErrRefused)
	e.publish(t, messageOf(f.second, readingAt(bad, "")), messageOf(f.second, readingAt(clock(11, 0, 0), "")))
	registry := prometheus.NewRegistry()
	w := New(Config{Queue: e.queue, Store: store, Log: zerolog.Nop(), Metrics: registry, ParkAfter: 1})
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { w.Run(ctx) })
	e.settle(t)
	stop()
	group.Wait()
	require.Len(t, store.snapshot().rows, 1)
	require.Contains(t, store.snapshot().rejects, rejectKey(1, roomsensor.ReasonNotStorable))
	require.InDelta(t, 1, proctest.Value(t, w.metrics.parked), 0)
	require.Equal(t, map[string]float64{"max_deliveries": 1, "holding": 0}, gaugesOf(t, registry, "roomsensor_ingest_"))
}

// A worker counts the unknown members of uploads that no receiver has counted.
func TestWorkerIgnoredFields(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 46 c")
	f, store := inMemory()
	registry := prometheus.NewRegistry()
	w := New(Config{Store: store, Log: zerolog.Nop(), Metrics: registry})
	direct := deliveryOf(f.second, 1, readingAt(clock(8, 0, 0), `"lux":1,"co2":2`), readingAt(clock(8, 5, 0), `"co2":3`))
	received := deliveryOf(f.second, 2, readingAt(clock(8, 0, 0), `"lux":1,"humidity":2`))
	received.arrival.Team = &f.ours
	b := &batch{deliveries: []*delivery{direct, received, deliveryOf("dev:404", 3, `7,`)}}
	results, err := w.writer.write(t.Context(), b.deliveries)
	require.NoError(t, err)
	w.report(b, results, nil, time.Now(), nil)
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "roomsensor_ingest_ignored_fields_total" {
			for _, m := range family.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"co2": 2, "other": 0}, counts)
}

func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	f, store := inMemory()
	e.publish(t,
		messageOf(f.second, readingAt(clock(8, 0, 0), `"lux":"x"`), readingAt(clock(8, 5, 0), "")),
		queue.Message{HardwareID: f.unknown, Text: []byte("hello")})
	w, stop := e.start(t, store)
	e.settle(t)
	stop()
	require.InDelta(t, 2, proctest.Value(t, w.metrics.uploads), 0)
	require.InDelta(t, 2, proctest.Value(t, w.metrics.readings), 0)
	require.InDelta(t, 2, proctest.Value(t, w.metrics.changed), 0)
	require.InDelta(t, 1, proctest.Value(t, w.metrics.rejects.WithLabelValues("value_invalid")), 0)
	require.InDelta(t, 1, proctest.Value(t, w.metrics.rejects.WithLabelValues("not_parsable")), 0)
	require.InDelta(t, 0, proctest.Value(t, w.metrics.rejects.WithLabelValues("not_storable")), 0)
}
