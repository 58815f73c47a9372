package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

func landerOf(s *memoryStore) *lander {
	return &lander{
		units: s, ping: s.Ping, log: zerolog.Nop(),
		write: func(ctx context.Context, b roomsensor.Batch) error {
			_, err := s.WriteBatch(ctx, b)
			return err
		},
	}
}

// groups draws a split of deliveries into batches, in any order and with
// repetitions.
func groups(t *rapid.T, letters []*letter) (batches [][]*delivery) {
	order := append(slices.Clone(letters), rapid.SliceOfN(rapid.SampledFrom(letters), 0, len(letters)).Draw(t, "again")...)
	order = rapid.Permutation(order).Draw(t, "order")
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(t, "batch")
		var batch []*delivery
		for _, l := range order[:n] {
			batch = append(batch, l.delivery())
		}
		batches, order = append(batches, batch), order[n:]
	}
	return batches
}

// Decisions 37 to 41: any multiset, any order, any split gives what one
// reading after the other gives.
func TestAnyOrderAndSplitGivesTheSameTables(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	rapid.Check(t, func(rt *rapid.T) {
		letters := f.letters(rt)
		store := newMemoryStore(f.units)
		for _, batch := range groups(rt, letters) {
			_, err := landerOf(store).land(t.Context(), batch)
			require.NoError(rt, err)
		}
		require.Equal(rt, f.expect(letters), store.table)
	})
}

// Batches must be sorted and name a key once, or workers deadlock and
// statements fail.
func TestBatchesAreSortedAndNameAKeyOnce(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	rapid.Check(t, func(rt *rapid.T) {
		store := newMemoryStore(f.units)
		store.fail = func(_ context.Context, b roomsensor.Batch) error {
			requireSorted(rt, b.Rows, func(r roomsensor.DeviceMeasurement) string {
				return fmt.Sprintf("%s %020d", r.DeviceID, r.Bucket().Unix())
			})
			requireSorted(rt, b.Seen, func(s roomsensor.DeviceSeen) string { return s.DeviceID.String() })
			return nil
		}
		for _, batch := range groups(rt, f.letters(rt)) {
			_, err := landerOf(store).land(t.Context(), batch)
			require.NoError(rt, err)
		}
	})
}

func requireSorted[T any](t require.TestingT, list []T, key func(T) string) {
	for i := 1; i < len(list); i++ {
		require.Less(t, key(list[i-1]), key(list[i]))
	}
}

// A batch with readings that the database refuses is halved until they are
// found: they become rejects, and every other reading lands.
func TestReadingsThatAreRefusedForGoodAreFound(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	rapid.Check(t, func(rt *rapid.T) {
		letters := f.letters(rt)
		cursed := rapid.SampledFrom(instants).Draw(rt, "cursed")
		store := newMemoryStore(f.units)
		store.fail = func(_ context.Context, b roomsensor.Batch) error {
			for i := range b.Rows {
				if b.Rows[i].MeasuredAt.Equal(cursed) {
					return fmt.Errorf("inserting readings: %w", roomsensor.ErrNotStorable)
				}
			}
			return nil
		}
		for _, batch := range groups(rt, letters) {
			_, err := landerOf(store).land(t.Context(), batch)
			require.NoError(rt, err)
			for _, d := range batch {
				require.True(rt, d.stored)
			}
		}
		requireLandedBut(rt, f, letters, store.table, cursed)
	})
}

// requireLandedBut compares with the model, where one instant is cursed. Its
// readings are in rejects, unless a later one of the bucket stands in their
// place: what loses is no reject. The others are as if the cursed had never
// been sent.
func requireLandedBut(t require.TestingT, f *fleet, letters []*letter, got *table, cursed time.Time) {
	all := f.expect(letters)
	var blessed []*letter
	for _, l := range letters {
		left := *l
		left.samples = slices.DeleteFunc(slices.Clone(l.samples), func(s sample) bool {
			device, _, there := f.device(l.unit, s.at, l.team)
			refused := s.problem == "" && there && s.at.Equal(cursed)
			if refused && all.rows[rowKey(device, s.at)].MeasuredAt.Equal(cursed) {
				require.Contains(t, got.rejects, rejectKey(l.sequence, roomsensor.ReasonNotStorable))
			}
			return refused
		})
		blessed = append(blessed, &left)
	}
	want := f.expect(blessed)
	require.Equal(t, want.rows, got.rows)
	require.Equal(t, all.seen, got.seen)
}

// What is too much at once is stored in parts and never a reject.
func TestWhatIsTooMuchAtOnceLandsInParts(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	rapid.Check(t, func(rt *rapid.T) {
		letters := f.letters(rt)
		most := rapid.IntRange(1, 5).Draw(rt, "most")
		store := newMemoryStore(f.units)
		store.fail = func(_ context.Context, b roomsensor.Batch) error {
			if len(b.Rows) > most {
				return fmt.Errorf("inserting readings: %w", roomsensor.ErrTooMuch)
			}
			return nil
		}
		for _, batch := range groups(rt, letters) {
			_, err := landerOf(store).land(t.Context(), batch)
			require.NoError(rt, err)
		}
		require.Equal(rt, f.expect(letters), store.table)
	})
}

func TestAFailureThatMayPassLeavesTheRestUnstored(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	store := newMemoryStore(f.units)
	away := errors.New("the database is away")
	store.fail = func(_ context.Context, b roomsensor.Batch) error {
		switch {
		case len(b.Rows) > 1:
			return roomsensor.ErrTooMuch
		case store.batches >= 2:
			return away
		}
		return nil
	}
	var batch []*delivery
	for i := range 4 {
		batch = append(batch, textOf(f.second, uint64(i+1), at(clock(8, 10+5*i, 0), "")))
	}
	_, err := landerOf(store).land(t.Context(), batch)
	require.ErrorIs(t, err, away)
	var stored []bool
	for _, d := range batch {
		stored = append(stored, d.stored)
	}
	require.Equal(t, []bool{true, true, false, false}, stored)
	require.Len(t, store.table.rows, 2)
}

// at is the text of a reading.
func at(instant time.Time, values string) string {
	if values != "" {
		values = "," + values
	}
	return `{"measured_at":"` + roomsensor.FormatTime(instant) + `"` + values + "}"
}

// textOf is a delivery of some readings that arrived in the evening.
func textOf(unit string, sequence uint64, readings string) *delivery {
	return judged(roomsensor.Arrival{At: clock(21, 0, 0), Sequence: sequence}, unit,
		[]byte(`{"hardware_id":"`+unit+`","readings":[`+readings+`]}`))
}

func TestAnUploadThatIsRefusedAsAWholeIsARejectAsAWhole(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	store := newMemoryStore(f.units)
	store.fail = func(_ context.Context, b roomsensor.Batch) error {
		if len(b.Rows) > 0 || len(b.Seen) > 0 {
			return roomsensor.ErrNotStorable
		}
		return nil
	}
	d := textOf(f.second, 7, at(clock(8, 0, 0), `"lux":"x"`))
	_, err := landerOf(store).land(t.Context(), []*delivery{d})
	require.NoError(t, err)
	require.True(t, d.stored)
	require.Equal(t, map[string]string{"7 not_storable": string(d.text)}, store.table.rejects)
}

func TestADatabaseThatKeepsNothingIsNeverAcknowledged(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	store := newMemoryStore(f.units)
	store.fail = func(context.Context, roomsensor.Batch) error { return roomsensor.ErrNotStorable }
	d := textOf(f.second, 7, at(clock(8, 0, 0), ""))
	_, err := landerOf(store).land(t.Context(), []*delivery{d})
	require.ErrorIs(t, err, roomsensor.ErrNotStorable)
	require.False(t, d.stored)
}

// Decision 39: a replay is judged with its first arrival and under its team.
func TestReplayLandsAfterTheCauseWasMended(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	store := newMemoryStore(map[string][]roomsensor.Installation{})
	d := textOf(f.second, 3, at(clock(8, 0, 0), `"lux":4`)+","+at(clock(21, 10, 0), ""))
	outcomes, err := landerOf(store).land(t.Context(), []*delivery{d})
	require.NoError(t, err)
	require.Len(t, outcomes[0].rejects, 1)
	reject := outcomes[0].rejects[0]
	reject.ID = uuid.New()
	require.Equal(t, roomsensor.ReasonUnknownUnit, reject.Reason)

	landed, err := ReplayReject(t.Context(), store, reject)
	require.NoError(t, err)
	require.False(t, landed)
	require.Equal(t, 1, store.replays[reject.ID])
	require.Empty(t, store.table.rows)

	store.units = f.units
	landed, err = ReplayReject(t.Context(), store, reject)
	require.NoError(t, err)
	require.True(t, landed)
	require.Equal(t, 2, store.replays[reject.ID])
	require.Len(t, store.table.rows, 2, "the second lies within 10 minutes of the first arrival")
	require.Equal(t, clock(21, 0, 0), store.table.seen[f.a.String()].LastSeenAt)
	require.Len(t, store.table.rejects, 1, "a replay makes no second reject")
}

func TestReplayIsJudgedUnderItsTeam(t *testing.T) {
	t.Parallel()
	f := randomFleet()
	store := newMemoryStore(f.units)
	reject := roomsensor.Reject{
		ID: uuid.New(), HardwareID: &f.second, Reason: roomsensor.ReasonUnknownUnit,
		Arrival: roomsensor.Arrival{At: clock(21, 0, 0), Sequence: 1, Team: &f.theirs},
		Payload: textOf(f.second, 1, at(clock(8, 0, 0), "")).text,
	}
	landed, err := ReplayReject(t.Context(), store, reject)
	require.NoError(t, err)
	require.False(t, landed)
	require.Empty(t, store.table.rows)

	reject.Arrival.Team = &f.ours
	landed, err = ReplayReject(t.Context(), store, reject)
	require.NoError(t, err)
	require.True(t, landed)
}

func TestReplayOfWhatCannotBeMendedIsNoted(t *testing.T) {
	t.Parallel()
	store := newMemoryStore(nil)
	for _, payload := range []string{"", "hello", `{"hardware_id":"dev:2","readings":[]}`} {
		reject := roomsensor.Reject{ID: uuid.New(), Arrival: roomsensor.Arrival{At: day}, Payload: []byte(payload)}
		landed, err := ReplayReject(t.Context(), store, reject)
		require.NoError(t, err)
		require.False(t, landed)
		require.Equal(t, 1, store.replays[reject.ID])
	}
}
