package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// alwaysBacklog makes a worker serve the priority lane all the time.
func alwaysBacklog(w *Worker) { w.backlog.minAge, w.backlog.minUploads = 0, 0 }

func TestPriorityLane(t *testing.T) {
	t.Parallel()

	t.Run("stores fresh uploads during a backlog, and again in their turn", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t)
		f, store := inMemory()
		release := make(chan struct{})
		store.before = func(ctx context.Context, batch roomsensor.Batch) error {
			if slices.ContainsFunc(batch.Rows, func(r roomsensor.DeviceMeasurement) bool { return r.DeviceID == f.b }) {
				select {
				case <-release: // The readings of the late device wait for the fresh ones.
				case <-ctx.Done():
				}
			}
			return nil
		}
		const late, fresh = 100, 10
		for n := range late {
			var readings []string
			for i := range 1000 {
				readings = append(readings, readingAt(clock(8, 0, 0).Add(-time.Duration(1000*n+i)*roomsensor.BucketLength), ""))
			}
			e.publish(t, messageOf(f.second, readings...))
		}
		for n := range fresh {
			e.publish(t, messageOf(f.first, readingAt(clock(20, 5*n, 0), fmt.Sprintf(`"lux":%d`, n))))
		}

		w, _ := e.start(t, store, alwaysBacklog)
		require.Eventually(t, func() bool { return len(store.snapshot().rows) == fresh }, patience, time.Millisecond)
		require.Zero(t, e.consumer(t).AckFloor.Stream)
		require.Zero(t, valueOf(t, w.metrics.uploads))
		close(release)
		e.settle(t)
		require.Len(t, store.snapshot().rows, fresh+1000*late)
		require.InDelta(t, late+fresh, valueOf(t, w.metrics.uploads), 0)
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

func TestBacklog(t *testing.T) {
	t.Parallel()
	b := backlog{minAge: backlogAge, minUploads: backlogUploads}
	exists := func() bool { _, exists := b.since(); return exists }
	require.False(t, exists(), "nothing was delivered")
	observe := func(age time.Duration, pending uint64) {
		b.observe(&queue.Delivery{Arrival: roomsensor.Arrival{At: time.Now().Add(-age)}, Pending: pending})
	}
	observe(time.Hour, backlogUploads-1)
	require.False(t, exists(), "the clock of the queue may be wrong")
	observe(0, 1<<20)
	require.False(t, exists(), "it may be stored within moments")
	observe(time.Hour, backlogUploads)
	require.True(t, exists())
}
