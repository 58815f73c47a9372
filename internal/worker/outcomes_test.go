package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// refuseAt makes a store answer batches with a reading of an instant with an error.
func (s *memoryStore) refuseAt(bad time.Time, err error) {
	s.before = func(_ context.Context, b roomsensor.Batch) error {
		for i := range b.Rows {
			if b.Rows[i].MeasuredAt.Equal(bad) {
				return err
			}
		}
		return nil
	}
}

// delivered returns a delivery that the queue delivers for the nth time.
func delivered(n int, d *delivery) *delivery {
	d.deliveries = n
	return d
}

func TestPark(t *testing.T) {
	t.Parallel()
	bad, good := clock(10, 10, 0), clock(12, 0, 0)
	for name, test := range map[string]struct {
		refusal    error
		deliveries int
		before     func(*writer)
		others     bool
		parked     bool
	}{
		"parks an upload that is refused too often":     {roomsensor.ErrRefused, 51, nil, true, true},
		"parks an upload that is blocked too often":     {roomsensor.ErrBlocked, 51, nil, true, true},
		"parks nothing up to the limit":                 {roomsensor.ErrRefused, 50, nil, true, false},
		"parks nothing while no other upload is stored": {roomsensor.ErrRefused, 51, nil, false, false},
		"parks nothing within a minute after an outage": {
			roomsensor.ErrRefused, 51, func(w *writer) { w.outcomes.countFailure(roomsensor.CodeOverloaded.New()) }, true, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, store := inMemory()
			store.refuseAt(bad, test.refusal)
			w := store.writer()
			if test.before != nil {
				test.before(w)
			}
			if test.others {
				writeAll(t, w, [][]*delivery{{deliveryOf(f.second, 1, readingAt(good, ""))}})
			}
			poisoned := delivered(test.deliveries, deliveryOf(f.second, 2, readingAt(bad, ""), readingAt(clock(11, 0, 0), "")))
			results, err := w.write(t.Context(), []*delivery{poisoned})
			require.Equal(t, test.parked, err == nil)
			require.Equal(t, test.parked, results[0].parked)
			want := map[string]string{}
			if test.parked {
				want["2 not_storable"] = string(messageOf(f.second, readingAt(bad, "")).Text)
			}
			require.Equal(t, want, store.content.rejects)
			require.Contains(t, store.content.rows, rowKey(f.a, clock(11, 0, 0)), "its good reading is stored in any case")
		})
	}
}

// The reject of a parked upload has all readings that were not stored, also those after which it was not split further.
func TestParkManyReadings(t *testing.T) {
	t.Parallel()
	f, store := inMemory()
	good := deliveryOf(f.second, 1, readingAt(clock(20, 0, 0), ""))
	store.before = func(_ context.Context, b roomsensor.Batch) error {
		if len(b.Rows) > 0 && b.Rows[0].MeasuredAt.Before(clock(20, 0, 0)) {
			return roomsensor.ErrRefused
		}
		return nil
	}
	var readings []string
	for n := range 5 * maxRefusals {
		readings = append(readings, readingAt(clock(8, 5*n, 0), ""))
	}
	w := store.writer()
	writeAll(t, w, [][]*delivery{{good}, {delivered(DefaultParkAfter+1, deliveryOf(f.second, 2, readings...))}})
	require.Equal(t, map[string]string{"2 not_storable": string(messageOf(f.second, readings...).Text)}, store.content.rejects)
}

// An outage parks nothing, however often its uploads are delivered, and whether or not it ends in between.
func TestParkOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := inMemory()
		w := store.writer()
		available := true
		store.before = func(context.Context, roomsensor.Batch) error {
			if !available {
				return roomsensor.CodeOverloaded.New()
			}
			return nil
		}
		for n := range 1_000 {
			time.Sleep(10 * time.Second)
			available = n%10 == 5
			var batch []*delivery
			for i := range 5 {
				batch = append(batch, delivered(n, deliveryOf(f.second, uint64(5*n+i+1), readingAt(clock(10, 0, 0), ""))))
			}
			_, err := w.write(t.Context(), batch)
			require.Equal(t, available, err == nil)
			require.False(t, isRefused(err))
			if err != nil {
				w.outcomes.countFailure(err)
			}
			require.False(t, w.outcomes.parks(1_000), n)
		}
		require.Empty(t, store.content.rejects)
	})
}

// An upload that a lock stops returns the batch to the queue at first. Once it was delivered often, the others are
// stored without it.
func TestWriteBlocked(t *testing.T) {
	t.Parallel()
	f, store := inMemory()
	bad := clock(10, 10, 0)
	store.refuseAt(bad, roomsensor.ErrBlocked)
	for _, deliveries := range []int{aloneAfter, aloneAfter + 1} {
		results, err := store.writer().write(t.Context(), []*delivery{
			delivered(deliveries, deliveryOf(f.second, 1, readingAt(bad, ""))),
			delivered(deliveries, deliveryOf(f.second, 2, readingAt(clock(11, 0, 0), ""))),
			deliveryOf(f.second, 3, readingAt(clock(12, 0, 0), "")),
		})
		require.ErrorIs(t, err, roomsensor.ErrBlocked)
		if deliveries > aloneAfter {
			require.Equal(t, []bool{true, false, true}, stored(results), "the often delivered ones come last")
		} else {
			require.Equal(t, []bool{false, false, false}, stored(results))
		}
	}
}

// The refusals of one upload, or of one batch, do not keep a writer busy.
func TestWriteRefusedBudget(t *testing.T) {
	t.Parallel()
	f, store := inMemory()
	attempts := 0
	store.before = func(_ context.Context, b roomsensor.Batch) error {
		attempts++
		if len(b.Rows) > 0 {
			return roomsensor.ErrRefused
		}
		return nil
	}
	var batch []*delivery
	for i := range 100 {
		var readings []string
		for n := range 200 {
			readings = append(readings, readingAt(clock(0, n, 0), ""))
		}
		batch = append(batch, deliveryOf(f.second, uint64(i+1), readings...))
	}
	results, err := store.writer().write(t.Context(), batch)
	require.ErrorIs(t, err, roomsensor.ErrRefused)
	require.NotContains(t, stored(results), true)
	const perUpload = 3 * maxRefusals // Each refused reading, and the parts that contained it.
	require.Less(t, attempts, maxRefusals*perUpload)
}

// A worker whose database refuses most uploads creates no more rejects, stores the other uploads, and resumes by itself.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := inMemory()
		bad := clock(10, 10, 0)
		store.refuseAt(bad, roomsensor.ErrNotStorable)
		w := store.writer()
		sequence := uint64(0)
		upload := func(at time.Time) *delivery {
			sequence++
			return deliveryOf(f.second, sequence, readingAt(at, ""))
		}
		for range holdMinimum {
			require.False(t, w.outcomes.holds())
			writeAll(t, w, [][]*delivery{{upload(bad)}})
		}
		require.True(t, w.outcomes.holds())
		require.Len(t, store.content.rejects, holdMinimum)

		results, err := w.write(t.Context(), []*delivery{upload(bad), upload(clock(11, 0, 0)), upload(bad)})
		require.ErrorIs(t, err, roomsensor.ErrRefused)
		require.Equal(t, []bool{false, true, false}, stored(results))
		require.Len(t, store.content.rejects, holdMinimum, "the others stay in the queue")

		last := []*delivery{upload(clock(11, 0, 0))}
		writeAll(t, w, [][]*delivery{last})
		require.True(t, w.outcomes.holds())
		resolved, err := w.resolve(t.Context(), last)
		require.NoError(t, err)
		w.outcomes.countBatch(resolved)
		require.False(t, w.outcomes.holds(), "the last batch was stored without a refusal")

		for range 2 * holdMinimum {
			_, _ = w.write(t.Context(), []*delivery{upload(bad)})
		}
		require.True(t, w.outcomes.holds())
		time.Sleep(time.Minute)
		require.False(t, w.outcomes.holds(), "the refusals are more than a minute old")
	})
}
