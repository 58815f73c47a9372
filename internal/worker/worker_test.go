package worker

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// Three workers, one of which stops and one of which starts late, share a real queue and a real database. A replay of
// the whole stream changes nothing.
func TestWorker(t *testing.T) {
	t.Parallel()
	e, db := newEnv(t), newDatabase(t)
	uploads := db.manyUploads()
	half := len(uploads) / 2

	_, stop := e.start(t, db)
	e.start(t, db)
	e.publishSent(t, uploads[:half]...)
	stop()
	e.start(t, db)
	e.publishSent(t, uploads[half:]...)
	e.settle(t)
	want := db.expect(uploads)
	require.NotEmpty(t, want.rows)
	require.Equal(t, want, db.snapshot(t))

	before := db.versions(t)
	require.NoError(t, e.queue.Replay(e.ctx, nil))
	e.settle(t)
	require.Equal(t, before, db.versions(t))
	require.Equal(t, want, db.snapshot(t))
	require.Zero(t, e.consumer(t).NumAckPending)
}

// Every valid reading is stored, every invalid part becomes a reject with its reason, and the next uploads are stored
// (decision 41).
func TestWorkerRejects(t *testing.T) {
	t.Parallel()
	e, db := newEnv(t), newDatabase(t)
	valid := func(n int) string { return readingAt(clock(10, 5*n, 0), `"lux":7`) }
	wrap := func(unit, readings string) string {
		return `{"hardware_id":"` + unit + `","readings":[` + readings + `]}`
	}
	bad := []struct {
		unit, text string
		reason     roomsensor.Reason // of its one reject
	}{
		{db.second, "", roomsensor.ReasonNotParsable},
		{db.second, "\x00\xff", roomsensor.ReasonNotParsable},
		{db.second, `{"hardware_id":7,"readings":[]}`, roomsensor.ReasonNotParsable},
		{db.second, wrap(db.second, `{"lux":NaN}`), roomsensor.ReasonNotParsable},
		{db.second, wrap(db.second, valid(1)+`,{"a":1,"a":2}`), roomsensor.ReasonNotParsable},
		{db.second, wrap(db.first, valid(1)), roomsensor.ReasonHardwareIDMismatch},
		{db.second, wrap(db.second, strings.Repeat("{},", 10_000)+"{}"), roomsensor.ReasonTooManyReadings},
		{db.second, wrap(db.second, valid(2)+`,7`), roomsensor.ReasonMeasuredAtInvalid},
		{db.second, wrap(db.second, valid(3)+`,{"measured_at":"1970-01-01T00:00:00Z"}`), roomsensor.ReasonMeasuredAtOutOfRange},
		{db.unknown, wrap(db.unknown, valid(4)), roomsensor.ReasonUnknownUnit},
		{db.unknown, wrap(db.unknown, ""), roomsensor.ReasonUnknownUnit},
		{"\x01", wrap("\\u0001", valid(4)), roomsensor.ReasonUnknownUnit},
		{db.first, wrap(db.first, readingAt(swap, "")), roomsensor.ReasonNotInstalled},
		{db.second, wrap(db.second, valid(6)+`,{"measured_at":"2025-06-02T10:00:00Z","co2":1}`), roomsensor.ReasonNoMetric},
		{db.second, wrap(db.second, readingAt(clock(10, 20, 0), `"lux":1e400`)), roomsensor.ReasonValueInvalid},
		{db.second, `{"hardware_id":"` + db.second + `","firmware_version":2,"readings":[` + valid(5) + `]}`, roomsensor.ReasonFieldInvalid},
	}
	for i, b := range bad {
		e.publish(t, queue.Message{HardwareID: b.unit, Text: []byte(b.text)}, messageOf(db.second, valid(10+i)))
	}
	e.start(t, db)
	e.settle(t)

	got := db.snapshot(t)
	for i, b := range bad {
		if b.unit == "\x01" {
			continue // The reject has no unit, so it is not in the snapshot.
		}
		require.Contains(t, got.rejects, rejectKey(uint64(2*i+1), b.reason), b.text)
	}
	require.Len(t, got.rejects, len(bad)-1)
	require.Len(t, got.rows, len(bad)+5, "the valid uploads, and the valid parts of the others")
}

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

	t.Run("a worker sends no ack before the commit", func(t *testing.T) {
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
	})

	t.Run("the queue keeps an upload that is not committed", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		entered, commit := make(chan struct{}, 1), make(chan struct{})
		store.before = func(ctx context.Context, _ roomsensor.Batch) error {
			entered <- struct{}{}
			select {
			case <-commit:
				return nil
			case <-ctx.Done(): // A failed test stops the worker without a commit.
				return ctx.Err()
			}
		}
		e.publish(t, messageOf(f.second, readingAt(clock(8, 0, 0), "")))
		w, _ := e.start(t, store, func(w *Worker) { w.StopTimeout = time.Second })
		<-entered
		require.NoError(t, w.Queue.Flush(e.ctx)) // The server has received what the worker sent.
		require.Equal(t, 1, e.consumer(t).NumAckPending)
		require.Zero(t, e.consumer(t).AckFloor.Stream)
		close(commit)
		e.settle(t)
		require.Len(t, store.snapshot().rows, 1)
	})
}

func TestWorkerOutages(t *testing.T) {
	t.Parallel()

	t.Run("an unavailable database delays and loses nothing", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		var attempts atomic.Int64
		store.before = func(context.Context, roomsensor.Batch) error {
			if attempts.Add(1) <= 3 {
				return roomsensor.CodeOverloaded.New()
			}
			return nil
		}
		uploads := f.manyUploads()[:50]
		e.publishSent(t, uploads...)
		e.start(t, store)
		e.settle(t)
		require.Equal(t, f.expect(uploads), store.snapshot())
	})

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

// A worker that stops under load stores and acknowledges what it holds. Every upload is written exactly once: what is
// committed is acknowledged, and what is not stored goes to the next worker at once.
func TestWorkerStop(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.extendAckWait(t)
	f, store := inMemory()
	written := make(chan uint64, 10_000)
	store.before = func(_ context.Context, batch roomsensor.Batch) error {
		for i := range batch.Rejects { // Each upload makes one reject.
			written <- batch.Rejects[i].Arrival.Sequence
		}
		return nil
	}
	const stops, publishers, each = 20, 4, 25
	count := map[uint64]int{}
	for range stops {
		_, stop := e.start(t, store)
		var group errgroup.Group
		for range publishers {
			group.Go(func() error {
				var uploads []queue.Message
				for range each {
					uploads = append(uploads, messageOf(f.unknown))
				}
				_, err := e.queue.Publish(e.ctx, uploads)
				return err
			})
		}
		count[<-written]++
		stop()
		require.NoError(t, group.Wait())
	}
	e.start(t, store)
	e.settle(t)
	close(written)
	for sequence := range written {
		count[sequence]++
	}
	require.Len(t, count, stops*publishers*each)
	for sequence, times := range count {
		require.Equal(t, 1, times, sequence)
	}
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
	require.InDelta(t, 1, valueOf(t, w.metrics.parked), 0)
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
	require.InDelta(t, 2, valueOf(t, w.metrics.uploads), 0)
	require.InDelta(t, 2, valueOf(t, w.metrics.readings), 0)
	require.InDelta(t, 2, valueOf(t, w.metrics.changed), 0)
	require.InDelta(t, 1, valueOf(t, w.metrics.rejects.WithLabelValues("value_invalid")), 0)
	require.InDelta(t, 1, valueOf(t, w.metrics.rejects.WithLabelValues("not_parsable")), 0)
	require.InDelta(t, 0, valueOf(t, w.metrics.rejects.WithLabelValues("not_storable")), 0)
}
