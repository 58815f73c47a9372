package ingest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// stored takes over when and as which message the queue stored an upload.
func (b *bench) stored(t *testing.T, letters []*letter) {
	t.Helper()
	stream, err := b.js.Stream(b.ctx, queue.StreamName)
	require.NoError(t, err)
	for i, l := range letters {
		msg, err := stream.GetMsg(b.ctx, uint64(i+1))
		require.NoError(t, err)
		l.arrived, l.sequence = msg.Time.UTC().Truncate(time.Microsecond), msg.Sequence
	}
}

// manyLetters is some hundred uploads of a fleet, the same every time but for
// the ids.
func manyLetters(f *fleet) (list []*letter) {
	generator := rapid.Custom(f.letters)
	for seed := range 40 {
		list = append(list, generator.Example(seed)...)
	}
	return list
}

// The whole way: a queue, three workers of which one leaves and one comes, and
// the real tables. The stream replayed from its start changes nothing.
func TestWorkersShareTheQueueAndAReplayChangesNothing(t *testing.T) {
	t.Parallel()
	b, tables := newBench(t), newTables(t)
	letters := manyLetters(tables.fleet)
	half := len(letters) / 2

	leave := b.work(t, tables)
	b.work(t, tables)
	b.publish(t, letters[:half]...)
	leave()
	b.work(t, tables)
	b.publish(t, letters[half:]...)
	b.settled(t)
	b.stored(t, letters)
	want := tables.fleet.expect(letters)
	require.Equal(t, want, tables.snapshot(t))
	require.NotEmpty(t, want.rows)

	before := tables.stamps(t)
	require.NoError(t, b.queue.Replay(b.ctx, nil))
	b.settled(t)
	require.Equal(t, before, tables.stamps(t))
	require.Equal(t, want, tables.snapshot(t))
	require.Zero(t, b.consumer(t).NumAckPending)
}

// Decision 41: every good reading lands and every bad upload is a reject, with
// the queue going on.
func TestPoisonBecomesRejects(t *testing.T) {
	t.Parallel()
	b, tables := newBench(t), newTables(t)
	f := tables.fleet
	good := func(n int) string { return at(clock(10, 5*n, 0), `"lux":7`) }
	wrap := func(unit, readings string) string {
		return `{"hardware_id":"` + unit + `","readings":[` + readings + `]}`
	}
	poison := []struct {
		unit, text string
		reason     roomsensor.Reason // of its one reject
	}{
		{f.second, "", roomsensor.ReasonNotParsable},
		{f.second, "\x00\xff", roomsensor.ReasonNotParsable},
		{f.second, `{"hardware_id":7,"readings":[]}`, roomsensor.ReasonNotParsable},
		{f.second, wrap(f.second, `{"lux":NaN}`), roomsensor.ReasonNotParsable},
		{f.second, wrap(f.second, good(1)+`,{"a":1,"a":2}`), roomsensor.ReasonNotParsable},
		{f.second, wrap(f.first, good(1)), roomsensor.ReasonHardwareIDMismatch},
		{f.second, wrap(f.second, strings.Repeat("{},", 10_000)+"{}"), roomsensor.ReasonTooManyReadings},
		{f.second, wrap(f.second, good(2)+`,7`), roomsensor.ReasonMeasuredAtInvalid},
		{f.second, wrap(f.second, good(3)+`,{"measured_at":"1970-01-01T00:00:00Z"}`), roomsensor.ReasonMeasuredAtOutOfRange},
		{f.unknown, wrap(f.unknown, good(4)), roomsensor.ReasonUnknownUnit},
		{f.unknown, wrap(f.unknown, ""), roomsensor.ReasonUnknownUnit},
		{"\x01", wrap("\\u0001", good(4)), roomsensor.ReasonUnknownUnit},
		{f.first, wrap(f.first, at(swap, "")), roomsensor.ReasonNotInstalled},
		{f.second, wrap(f.second, at(clock(10, 20, 0), `"lux":1e400`)), roomsensor.ReasonValueInvalid},
		{f.second, `{"hardware_id":"` + f.second + `","firmware_version":2,"readings":[` + good(5) + `]}`, roomsensor.ReasonFieldInvalid},
	}
	for i, p := range poison {
		b.publishText(t, p.unit, p.text)
		b.publishText(t, f.second, wrap(f.second, good(10+i)))
	}
	b.work(t, tables)
	b.settled(t)

	got := tables.snapshot(t)
	for i, p := range poison {
		if p.unit == "\x01" {
			continue // Of a unit that is none of the fleet's.
		}
		require.Contains(t, got.rejects, rejectKey(uint64(2*i+1), p.reason), p.text)
	}
	require.Len(t, got.rejects, len(poison)-1)
	require.Len(t, got.rows, len(poison)+4, "the good ones, and the good parts of the bad ones")
}

func TestNothingIsAcknowledgedBeforeItsCommit(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	entered, commit := make(chan struct{}, 1), make(chan struct{})
	tables.fail = func(context.Context, roomsensor.Batch) error {
		entered <- struct{}{}
		<-commit
		return nil
	}
	b.publishText(t, f.second, string(textOf(f.second, 0, at(clock(8, 0, 0), "")).text))
	b.work(t, tables)
	<-entered
	require.Equal(t, 1, b.consumer(t).NumAckPending)
	require.Zero(t, b.consumer(t).AckFloor.Stream)
	close(commit)
	b.settled(t)
	require.Len(t, tables.snapshot().rows, 1)
}

func TestADatabaseThatIsAwayDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	var attempts atomic.Int64
	tables.fail = func(context.Context, roomsensor.Batch) error {
		if attempts.Add(1) <= 3 {
			return roomsensor.CodeOverloaded.New()
		}
		return nil
	}
	letters := manyLetters(f)[:50]
	b.publish(t, letters...)
	b.work(t, tables)
	b.settled(t)
	b.stored(t, letters)
	require.Equal(t, f.expect(letters), tables.snapshot())
}

// A stop under load, again and again: every upload is written once, so nothing
// comes again that was committed, and what had not come goes to another worker
// at once.
func TestAStopStoresAndAcknowledgesWhatIsHeld(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	written := make(chan uint64, 10_000)
	tables.fail = func(_ context.Context, batch roomsensor.Batch) error {
		for i := range batch.Rejects { // Each of the uploads is one reject.
			written <- batch.Rejects[i].Arrival.Sequence
		}
		return nil
	}
	count := map[uint64]int{}
	started := time.Now()
	for range 20 {
		stop := b.work(t, tables)
		var group errgroup.Group
		for range 4 {
			group.Go(func() error {
				_, err := b.queue.Publish(b.ctx, unknownUploads(f.unknown, 25))
				return err
			})
		}
		count[<-written]++
		stop()
		require.NoError(t, group.Wait())
	}
	b.work(t, tables)
	b.settled(t)
	require.Less(t, time.Since(started), queue.AckWait/2)
	close(written)
	for sequence := range written {
		count[sequence]++
	}
	require.Len(t, count, 20*100)
	for sequence, times := range count {
		require.Equal(t, 1, times, sequence)
	}
}

func unknownUploads(unit string, n int) []queue.Message {
	list := make([]queue.Message, n)
	for i := range list {
		list[i] = queue.Message{HardwareID: unit, Text: []byte(`{"hardware_id":"` + unit + `","readings":[]}`)}
	}
	return list
}

func TestAHardStopGivesBackWhatIsNotStored(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	stuck := make(chan struct{}, 1)
	tables.fail = func(ctx context.Context, _ roomsensor.Batch) error {
		stuck <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	w := NewWorker(WorkerConfig{
		Queue: b.queue, Store: tables, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(), StopTimeout: 50 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	b.publishText(t, f.second, string(textOf(f.second, 0, at(clock(8, 0, 0), "")).text))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	<-stuck
	cancel()
	<-done
	require.Empty(t, tables.snapshot().rows)

	tables.fail = nil
	started := time.Now()
	b.work(t, tables)
	b.settled(t)
	require.Less(t, time.Since(started), queue.AckWait/2, "it was given back, not left to run out")
	require.Len(t, tables.snapshot().rows, 1)
}

func TestAWorkerOutlivesTheQueueAndItsConsumer(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	b.work(t, tables)
	text := func(n int) string { return string(textOf(f.second, 0, at(clock(10, 5*n, 0), "")).text) }
	b.publishText(t, f.second, text(0))
	b.settled(t)

	b.server.Restart(t)
	require.Eventually(t, func() bool {
		_, err := b.queue.Publish(b.ctx, []queue.Message{{HardwareID: f.second, Text: []byte(text(1))}})
		return err == nil
	}, patience, 50*time.Millisecond)
	b.settled(t)
	require.Len(t, tables.snapshot().rows, 2)

	require.NoError(t, b.js.DeleteConsumer(b.ctx, queue.StreamName, queue.ConsumerName))
	b.publishText(t, f.second, text(2))
	b.settled(t)
	require.Len(t, tables.snapshot().rows, 3)
}

func TestAWorkerPurgesWhatIsStoredAndOld(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	for n := range 5 {
		b.publishText(t, f.second, string(textOf(f.second, 0, at(clock(10, 5*n, 0), "")).text))
	}
	b.work(t, tables)
	b.settled(t)
	registry := prometheus.NewRegistry()
	w := NewWorker(WorkerConfig{Queue: b.queue, Store: tables, Log: zerolog.Nop(), Metrics: registry, Keep: time.Nanosecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	require.Eventually(t, func() bool {
		stream, err := b.js.Stream(b.ctx, queue.StreamName)
		return err == nil && stream.CachedInfo().State.Msgs == 0
	}, patience, 10*time.Millisecond)
	cancel()
	<-done
	require.InDelta(t, 5, measured(t, w.metrics.purged), 0)
}

// The time for which the stream keeps uploads passes while no worker is there, and while one cannot store: nothing goes
// that is not stored.
func TestAWorkerPurgesNothingThatIsNotStored(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	letters := manyLetters(f)[:50]
	b.publish(t, letters...)
	b.stored(t, letters)
	stream, err := b.js.Stream(b.ctx, queue.StreamName)
	require.NoError(t, err)
	held := func() uint64 {
		info, err := stream.Info(b.ctx)
		require.NoError(t, err)
		return info.State.Msgs
	}
	var purges atomic.Int64
	tables.fail = func(context.Context, roomsensor.Batch) error {
		if purges.Load() < 3 {
			return roomsensor.CodeOverloaded.New()
		}
		return nil
	}
	b.work(t, tables)
	for purges.Load() < 3 {
		_, err := b.queue.Purge(b.ctx, time.Nanosecond)
		require.NoError(t, err)
		require.Equal(t, uint64(len(letters)), held())
		purges.Add(1)
	}
	b.settled(t)
	require.Equal(t, f.expect(letters), tables.snapshot())
	_, err = b.queue.Purge(b.ctx, time.Nanosecond)
	require.NoError(t, err)
	require.Zero(t, held())
}

func TestAWorkerMeasures(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	b.publishText(t, f.second, string(textOf(f.second, 0, at(clock(8, 0, 0), `"lux":"x"`)+","+at(clock(8, 5, 0), "")).text))
	b.publishText(t, f.unknown, "hello")
	w := NewWorker(WorkerConfig{Queue: b.queue, Store: tables, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	b.settled(t)
	cancel()
	<-done
	require.InDelta(t, 2, measured(t, w.metrics.uploads), 0)
	require.InDelta(t, 2, measured(t, w.metrics.readings), 0)
	require.InDelta(t, 2, measured(t, w.metrics.changed), 0)
	require.InDelta(t, 1, measured(t, w.metrics.rejects.WithLabelValues("value_invalid")), 0)
	require.InDelta(t, 1, measured(t, w.metrics.rejects.WithLabelValues("not_parsable")), 0)
	require.InDelta(t, 0, measured(t, w.metrics.rejects.WithLabelValues("not_storable")), 0)
}

// A message with a header that names no team is nobody's.
func TestAMessageWithAnUnclearTeamIsAReject(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	text := textOf(f.second, 0, at(clock(8, 0, 0), "")).text
	msg := queueMessage(f.second, text, "not a team")
	_, err := b.js.PublishMsg(b.ctx, msg)
	require.NoError(t, err)
	b.work(t, tables)
	b.settled(t)
	require.Equal(t, map[string]string{"1 not_parsable": string(text)}, tables.snapshot().rejects)
	require.Empty(t, tables.snapshot().rows)
}

func TestAWorkerWithoutAQueueStops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Shutdown()
	w := NewWorker(WorkerConfig{
		Queue: b.queue, Store: newMemoryStore(nil), Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(), StopTimeout: time.Second,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	w.Run(ctx)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}
