package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

func stored(results []result) (list []bool) {
	for i := range results {
		list = append(list, results[i].stored)
	}
	return list
}

// writeAll writes batches, all of which must be stored.
func writeAll(t require.TestingT, w *writer, batches [][]*delivery) {
	for _, batch := range batches {
		results, err := w.write(context.Background(), batch)
		require.NoError(t, err)
		require.Len(t, results, len(batch))
		require.NotContains(t, stored(results), false)
	}
}

// Uploads in any order, repeated and split into any batches give the same content (decisions 37 to 41).
func TestWrite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f, store := inMemory()
		store.before = func(_ context.Context, b roomsensor.Batch) error {
			// Otherwise workers deadlock, and statements fail.
			requireSorted(rt, b.Rows, func(r roomsensor.DeviceMeasurement) string {
				return fmt.Sprintf("%s %020d", r.DeviceID, r.Bucket().Unix())
			})
			requireSorted(rt, b.Seen, func(s roomsensor.DeviceHeartbeat) string { return s.DeviceID.String() })
			requireSorted(rt, b.Rejects, func(r roomsensor.Reject) string {
				return fmt.Sprintf("%020d %020d %s", r.Arrival.At.UnixMicro(), r.Arrival.Sequence, r.Reason)
			})
			return nil
		}
		uploads := f.uploads(rt)
		writeAll(rt, store.writer(), drawBatches(rt, uploads))
		require.Equal(rt, f.expect(uploads), store.content)
	})
}

// requireSorted checks that keys ascend and do not repeat.
func requireSorted[T any](t require.TestingT, list []T, key func(T) string) {
	for i := 1; i < len(list); i++ {
		require.Less(t, key(list[i-1]), key(list[i]))
	}
}

func TestWriteFailures(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the database is unavailable")

	t.Run("a failure that may pass leaves the rest unstored", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		store.before = func(_ context.Context, b roomsensor.Batch) error {
			switch {
			case len(b.Rows) > 1:
				return roomsensor.ErrRefused
			case store.batches >= 2:
				return unavailable
			}
			return nil
		}
		var batch []*delivery
		for i := range 4 {
			batch = append(batch, deliveryOf(f.second, uint64(i+1), readingAt(clock(8, 10+5*i, 0), "")))
		}
		results, err := store.writer().write(t.Context(), batch)
		require.ErrorIs(t, err, unavailable)
		require.Equal(t, []bool{true, true, false, false}, stored(results))
		require.Len(t, store.content.rows, 2)
	})

	t.Run("a refused upload does not keep the others out", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		bad := clock(10, 10, 0)
		store.before = func(_ context.Context, b roomsensor.Batch) error {
			for i := range b.Rows {
				if b.Rows[i].MeasuredAt.Equal(bad) {
					return roomsensor.ErrRefused
				}
			}
			return nil
		}
		batch := []*delivery{
			deliveryOf(f.second, 1, readingAt(bad, ""), readingAt(clock(10, 30, 0), "")),
			deliveryOf(f.second, 2, readingAt(clock(11, 0, 0), "")),
			deliveryOf(f.second, 3, readingAt(clock(12, 0, 0), "")),
		}
		results, err := store.writer().write(t.Context(), batch)
		require.ErrorIs(t, err, roomsensor.ErrRefused)
		require.Equal(t, []bool{false, true, true}, stored(results))
		require.Len(t, store.content.rows, 3, "also the good reading of the refused upload")
		require.Empty(t, store.content.rejects)
	})

	t.Run("an upload whose heartbeat is refused becomes one reject", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		store.before = func(_ context.Context, b roomsensor.Batch) error {
			if len(b.Rows) > 0 || len(b.Seen) > 0 {
				return roomsensor.ErrNotStorable
			}
			return nil
		}
		d := deliveryOf(f.second, 7, readingAt(clock(8, 0, 0), `"lux":"x"`))
		writeAll(t, store.writer(), [][]*delivery{{d}})
		require.Equal(t, map[string]string{"7 not_storable": string(d.text)}, store.content.rejects)
	})

	t.Run("an upload of which nothing is stored stays unstored", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		store.before = func(context.Context, roomsensor.Batch) error { return roomsensor.ErrNotStorable }
		results, err := store.writer().write(t.Context(), []*delivery{deliveryOf(f.second, 7, readingAt(clock(8, 0, 0), ""))})
		require.ErrorIs(t, err, roomsensor.ErrNotStorable)
		require.Equal(t, []bool{false}, stored(results))
	})
}

// A reject is resolved again with its first arrival and under its team (decision 39).
func TestReplay(t *testing.T) {
	t.Parallel()

	t.Run("stores what was rejected once its cause is fixed", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		store.installations = nil
		d := deliveryOf(f.second, 3, readingAt(clock(8, 0, 0), `"lux":4`), readingAt(clock(21, 10, 0), ""))
		results, err := store.writer().write(t.Context(), []*delivery{d})
		require.NoError(t, err)
		require.Len(t, results[0].rejects, 1)
		reject := results[0].rejects[0]
		reject.ID = uuid.New()
		require.Equal(t, roomsensor.ReasonUnknownUnit, reject.Reason)

		rest, err := Replay(t.Context(), store, reject)
		require.NoError(t, err)
		require.NotEmpty(t, rest)
		require.Equal(t, 1, store.replays[reject.ID])
		require.Empty(t, store.content.rows)

		store.installations = f.installations
		rest, err = Replay(t.Context(), store, reject)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, 2, store.replays[reject.ID])
		require.Len(t, store.content.rows, 2, "the second reading is within 10 minutes of the first arrival")
		require.Equal(t, clock(21, 0, 0), store.content.heartbeats[f.a.String()].LastSeenAt)
		require.Len(t, store.content.rejects, 1, "a replay makes no second reject")
	})

	t.Run("assigns readings to devices of the reject's team only", func(t *testing.T) {
		t.Parallel()
		f, store := inMemory()
		reject := roomsensor.Reject{
			ID: uuid.New(), HardwareID: &f.second, Reason: roomsensor.ReasonUnknownUnit,
			Arrival: roomsensor.Arrival{At: clock(21, 0, 0), Sequence: 1, Team: &f.theirs},
			Payload: deliveryOf(f.second, 1, readingAt(clock(8, 0, 0), "")).text,
		}
		rest, err := Replay(t.Context(), store, reject)
		require.NoError(t, err)
		require.NotEmpty(t, rest)
		require.Empty(t, store.content.rows)

		reject.Arrival.Team = &f.ours
		rest, err = Replay(t.Context(), store, reject)
		require.NoError(t, err)
		require.Empty(t, rest)
	})

	t.Run("sets the time of the replay also where the payload cannot be stored", func(t *testing.T) {
		t.Parallel()
		for _, payload := range []string{"", "hello", `{"hardware_id":"dev:2","readings":[]}`} {
			store := newMemoryStore(nil)
			reject := roomsensor.Reject{ID: uuid.New(), Arrival: roomsensor.Arrival{At: day}, Payload: []byte(payload)}
			rest, err := Replay(t.Context(), store, reject)
			require.NoError(t, err)
			require.NotEmpty(t, rest)
			require.Equal(t, 1, store.replays[reject.ID])
		}
	})
}
