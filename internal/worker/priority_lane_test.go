package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// alwaysBacklog makes a worker serve the priority lane all the time.
func alwaysBacklog(w *Worker) { w.backlog.minAge, w.backlog.minUploads = 0, 0 }

// lateReadings is the number of readings of a late upload, which is too large for the priority lane.
const lateReadings = 1000

// publishLate publishes late uploads of device b, more than a worker writes at once, and returns their number.
func (e *env) publishLate(t *testing.T, f *fixture) int {
	t.Helper()
	const late = 30
	var uploads []queue.Message
	for n := range late {
		var readings []string
		for i := range lateReadings {
			at := clock(8, 0, 0).Add(-time.Duration(lateReadings*n+i) * roomsensor.BucketLength)
			readings = append(readings, readingAt(at, ""))
		}
		uploads = append(uploads, messageOf(f.second, readings...))
	}
	e.publish(t, uploads...)
	return late
}

// of reports whether a batch has readings of a device.
func of(batch roomsensor.Batch, device uuid.UUID) bool {
	return slices.ContainsFunc(batch.Rows, func(r roomsensor.DeviceMeasurement) bool { return r.DeviceID == device })
}

// wait waits for a channel to be closed, or until ctx ends.
func wait(ctx context.Context, closed <-chan struct{}) {
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

func TestPriorityLane(t *testing.T) {
	t.Parallel()

	t.Run("stores fresh uploads during a backlog, and again in their turn", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		release := make(chan struct{})
		store.before = func(ctx context.Context, batch roomsensor.Batch) error {
			if of(batch, f.b) { // The readings of the late device wait for the fresh ones.
				wait(ctx, release)
			}
			return nil
		}
		const fresh = 10
		late := e.publishLate(t, f)
		for n := range fresh {
			e.publish(t, messageOf(f.first, readingAt(clock(20, 5*n, 0), fmt.Sprintf(`"lux":%d`, n))))
		}

		w, _ := e.start(t, store, alwaysBacklog)
		require.Eventually(t, func() bool { return len(store.snapshot().rows) == fresh }, patience, time.Millisecond)
		require.Zero(t, e.consumer(t).AckFloor.Stream)
		require.Zero(t, proctest.Value(t, w.metrics.uploads))
		close(release)
		e.settle(t)
		require.Len(t, store.snapshot().rows, fresh+lateReadings*late)
		require.InDelta(t, late+fresh, proctest.Value(t, w.metrics.uploads), 0)
	})

	t.Run("stores fresh uploads beside one that the database refuses", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		bad := clock(10, 0, 0)
		store.refuseAt(bad, roomsensor.ErrRefused)
		w := New(Config{Store: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
		b := newLaneBatch(defaultLaneBytes)
		for n, at := range []time.Time{clock(9, 0, 0), bad, clock(11, 0, 0)} {
			b.add(&queue.Delivery{
				Arrival: deliveryOf(f.second, uint64(n)).arrival, HardwareID: f.second, Text: messageOf(f.second, readingAt(at, "")).Text,
			})
		}
		require.NoError(t, w.writeFresh(t.Context(), b))
		require.Len(t, store.snapshot().rows, 2)
		require.Empty(t, store.snapshot().rejects)
	})

	t.Run("gives the content that storing each upload in its turn gives", func(t *testing.T) {
		t.Parallel()
		e, db := newEnv(t), newDatabase(t)
		uploads := db.manyUploads()
		e.start(t, db, alwaysBacklog)
		e.start(t, db, alwaysBacklog)
		e.publishSent(t, uploads...)
		e.settle(t)
		require.Equal(t, db.expect(uploads), db.snapshot(t))
	})
}

// A team that floods small uploads does not delay another one. The lane reads on while its first transaction takes long,
// and keeps what it has room for: the uploads of the other team are in it, although more than a thousand of the first
// team come before them.
func TestPriorityLaneShares(t *testing.T) {
	t.Parallel()
	const flood, others, laneBytes = 1000, 10, 8 << 10
	e := newEnv(t)
	f, store := inMemory()
	release, first := make(chan struct{}), make(chan struct{})
	store.before = func(ctx context.Context, batch roomsensor.Batch) error {
		if of(batch, f.b) {
			wait(ctx, release)
		} else {
			wait(ctx, first)
		}
		return nil
	}
	late := e.publishLate(t, f)
	var uploads []queue.Message
	for n := range flood + others {
		unit, team := f.second, &f.ours
		if n >= flood {
			unit, team = f.first, &f.theirs
		}
		m := messageOf(unit, readingAt(clock(9, 5*n, 0), ""))
		m.Team = team
		uploads = append(uploads, m)
	}
	w, _ := e.start(t, store, alwaysBacklog, func(w *Worker) { w.laneBytes = laneBytes })
	e.publish(t, uploads...)
	require.Eventually(t, func() bool {
		lane, err := e.js.Consumer(e.ctx, queue.StreamName, "ingest-ahead")
		return err == nil && lane.CachedInfo().Delivered.Stream == uint64(late+flood+others)
	}, patience, time.Millisecond)
	close(first)
	rows := func(device uuid.UUID) (n int) {
		for key := range store.snapshot().rows {
			if strings.HasPrefix(key, device.String()) {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return rows(f.c) == others }, patience, time.Millisecond)
	require.Less(t, rows(f.a), 700, "at most what the lane had fetched and not yet looked at")
	require.Zero(t, e.consumer(t).AckFloor.Stream)
	close(release)
	e.settle(t)
	require.Equal(t, flood, rows(f.a))
	require.InDelta(t, late+flood+others, proctest.Value(t, w.metrics.uploads), 0)
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := backlog{minAge: backlogAge, minUploads: backlogUploads}
		exists := func() bool { _, exists := b.since(); return exists }
		require.False(t, exists(), "nothing was delivered")
		observe := func(age time.Duration, pending uint64) {
			b.observe(&queue.Delivery{Arrival: roomsensor.Arrival{At: time.Now().Add(-age)}, Pending: pending})
		}
		observe(time.Hour, backlogUploads-1)
		require.False(t, exists(), "the clock of the queue may be wrong")
		observe(backlogAge-1, 1<<20)
		require.False(t, exists(), "it may be stored within moments")
		observe(backlogAge, backlogUploads)
		require.True(t, exists())
	})
}
