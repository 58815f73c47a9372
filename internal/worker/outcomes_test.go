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
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
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

// A worker separates all readings of a parked upload that the database refuses from the good ones, while it has time for
// that. Without time, it separates the first ones; the reject has all readings that were not stored, and a replay stores
// the good ones.
func TestParkManyReadings(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 41 c")
	const each = 5 * maxRefusals
	for name, test := range map[string]struct {
		refusal time.Duration // how long the database takes for each
		splits  bool
	}{
		"fast refusals": {splitTime / each / 10, true},
		"slow refusals": {splitTime, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := inMemory()
				refusing := true
				store.before = func(_ context.Context, b roomsensor.Batch) error {
					for i := range b.Rows {
						if refusing && b.Rows[i].MeasuredAt.Second() == 1 {
							time.Sleep(test.refusal)
							return roomsensor.ErrRefused
						}
					}
					return nil
				}
				var all, refused []string
				for n := range each {
					refused = append(refused, readingAt(clock(0, 10*n, 1), ""))
					all = append(all, readingAt(clock(0, 10*n+5, 0), ""), refused[n])
				}
				w := store.writer()
				writeAll(t, w, [][]*delivery{
					{deliveryOf(f.second, 1, readingAt(clock(20, 0, 0), ""))}, {delivered(DefaultParkAfter+1, deliveryOf(f.second, 2, all...))},
				})
				rejected := store.content.rejects["2 not_storable"]
				require.Equal(t, test.splits, rejected == string(messageOf(f.second, refused...).Text))
				stored := len(store.content.rows) - 1
				require.Equal(t, each, strings.Count(rejected, ":01Z"))
				require.Equal(t, 2*each-stored, strings.Count(rejected, "measured_at"), "nothing is lost")
				require.GreaterOrEqual(t, stored, maxRefusals-1)
				require.Equal(t, test.splits, stored == each)

				refusing = false
				rest, err := Replay(t.Context(), store, roomsensor.Reject{
					ID: uuid.New(), HardwareID: &f.second, Arrival: deliveryOf(f.second, 2).arrival, Payload: []byte(rejected),
				})
				require.NoError(t, err)
				require.Empty(t, rest)
				require.Len(t, store.content.rows, 2*each+1)
			})
		})
	}
}

// Splitting parked uploads takes a worker 10 s per minute at most, whatever their number.
func TestParkManyUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outcomes{}
		require.Equal(t, splitTime, o.splittable())
		o.countSplitting(splitTime / 4)
		require.Equal(t, splitTime*3/4, o.splittable())
		o.countSplitting(splitTime)
		require.Zero(t, o.splittable())
		time.Sleep(time.Minute)
		require.Equal(t, splitTime, o.splittable())
	})
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

// However many uploads of a team the database refuses, they delay an upload of another sender by one delivery at most.
func TestWriteSuspects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := inMemory()
		bad := clock(10, 10, 0)
		store.refuseAt(bad, roomsensor.ErrRefused)
		w, team := store.writer(), f.ours
		write := func() []bool {
			var batch []*delivery
			for n := range 5 * maxRefusals {
				d := deliveryOf(f.second, uint64(n+1), readingAt(bad, ""))
				d.arrival.Team = &team
				batch = append(batch, d)
			}
			batch = append(batch, deliveryOf(f.first, 1_000, readingAt(clock(12, 0, 0), "")))
			results, err := w.write(t.Context(), batch)
			require.ErrorIs(t, err, roomsensor.ErrRefused)
			i := slices.IndexFunc(results, func(r result) bool { return r.delivery.arrival.Sequence == 1_000 })
			return []bool{i == 0, results[i].stored}
		}
		require.Equal(t, []bool{false, false}, write(), "the budget of the batch is spent on the uploads before it")
		require.Equal(t, []bool{true, true}, write(), "the team is a suspect now")
		time.Sleep(time.Minute)
		require.Equal(t, []bool{false, false}, write(), "the refusals are more than a minute old")

		for n := range 2 * maxSuspects {
			d := deliveryOf(fmt.Sprintf("dev:%d", n), 1)
			id := uuid.New()
			d.arrival.Team = &id
			w.outcomes.countRefused(d)
		}
		require.Len(t, w.outcomes.suspects.units, maxSuspects)
		require.Len(t, w.outcomes.suspects.teams, maxSuspects)
	})
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
		require.True(t, w.outcomes.stores(), "uploads are stored, so that the worker goes on without a wait")
		time.Sleep(storesWithin * time.Second)
		require.False(t, w.outcomes.stores())
		time.Sleep(time.Minute)
		require.False(t, w.outcomes.holds(), "the refusals are more than a minute old")
	})
}

// The refusals of one unit do not make a worker hold the uploads of a fleet.
func TestHoldOneUnit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := inMemory()
		bad := clock(10, 10, 0)
		store.refuseAt(bad, roomsensor.ErrRefused)
		w := store.writer()
		for n := range 10 * holdMinimum {
			_, err := w.write(t.Context(), []*delivery{deliveryOf(f.second, uint64(n), readingAt(bad, ""))})
			require.ErrorIs(t, err, roomsensor.ErrRefused)
		}
		require.True(t, w.outcomes.holds(), "nothing else was stored")
		for n := range maxRefusals {
			writeAll(t, w, [][]*delivery{{deliveryOf(f.first, uint64(1_000+n), readingAt(clock(12, 0, n), ""))}})
		}
		require.False(t, w.outcomes.holds())
	})
}
