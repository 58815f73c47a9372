package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// Decisions 37 and 38: whatever is delivered, in any order, split in any way,
// by several writers at once and twice over, the table is the fold of Unite.
func TestUpsertIsOrderFree(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.url, store.Ingest)
	base := at("2026-01-01T00:00:00Z")

	rapid.Check(t, func(rt *rapid.T) {
		device := uuid.New()
		f.exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:9')", device, f.team)
		delivered := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) roomsensor.DeviceMeasurement {
			m := roomsensor.DeviceMeasurement{DeviceID: device}
			m.MeasuredAt = base.Add(time.Duration(rapid.IntRange(0, 11).Draw(rt, "minute")) * time.Minute)
			for _, metric := range roomsensor.Metrics {
				if x := rapid.IntRange(-1, 2).Draw(rt, "value"); x >= 0 {
					m.Values.Set(metric, float32(x)/3)
				}
			}
			return m
		}), 1, 12).Draw(rt, "delivered")

		want := map[time.Time]roomsensor.Measurement{}
		for _, m := range delivered {
			merged := m.Measurement
			if before, ok := want[m.Bucket()]; ok {
				merged = roomsensor.Unite(before, merged)
			}
			want[m.Bucket()] = merged
		}

		var writers errgroup.Group
		for _, m := range append(slices.Clone(delivered), delivered...) {
			writers.Go(func() error {
				_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{m}})
				return err
			})
		}
		require.NoError(rt, writers.Wait())

		stored := f.readAll(t, device)
		require.Len(rt, stored, len(want))
		for _, row := range stored {
			require.Equal(rt, want[row.BucketAt].Values, row.Values)
		}
	})
}

// Decision 38: ingested_at changes only when one of the five metrics changes.
func TestIngestedAtFollowsTheMetrics(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const early, later = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
	require.EqualValues(t, 1, f.write(t, co2(f.device, early, 500)))
	first := f.readAll(t, f.device)[0]

	require.Zero(t, f.write(t, co2(f.device, early, 500)), "a redelivery writes nothing")
	require.Zero(t, f.write(t, co2(f.device, early, 499)), "the smaller of two values loses")
	require.Equal(t, first, f.readAll(t, f.device)[0])

	require.EqualValues(t, 1, f.write(t, co2(f.device, later, 500)), "the later measurement is noted")
	require.Equal(t, first, f.readAll(t, f.device)[0], "and changes nothing that can be seen")

	require.Zero(t, f.write(t, co2(f.device, early, 9000)), "the earlier measurement has lost")
	require.EqualValues(t, 1, f.write(t, co2(f.device, later, 501)))
	changed := f.readAll(t, f.device)[0]
	require.True(t, changed.IngestedAt.After(first.IngestedAt))
}

// A row that another tool put there without measured_at counts as measured at
// the start of its bucket.
func TestUpsertOntoARowWithoutMeasuredAt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, "INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES ($1, '2026-01-01T00:00:00Z', 700, 20)", f.device)
	f.write(t, co2(f.device, "2026-01-01T00:00:00Z", 650))
	value, _ := valueOf(f.readAll(t, f.device)[0], roomsensor.CO2)
	require.EqualValues(t, 700, value)
	f.write(t, co2(f.device, "2026-01-01T00:00:01Z", 650))
	stored := f.readAll(t, f.device)[0]
	value, _ = valueOf(stored, roomsensor.CO2)
	require.EqualValues(t, 650, value)
	_, ok := valueOf(stored, roomsensor.Temp)
	require.False(t, ok, "the later measurement is the reading as a whole")
}

func valueOf(r roomsensor.Reading, m roomsensor.Metric) (float32, bool) { return r.Values.Get(m) }

// A value that the database refuses is told from a database that is away.
func TestBucketOffTheGridIsNotStorable(t *testing.T) {
	t.Parallel()
	f := setup(t)
	off := co2(f.device, "2026-01-01T00:00:00Z", 1)
	off.MeasuredAt = time.Date(-20000, 1, 1, 0, 0, 0, 0, time.UTC) // Before what a timestamp can hold.
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{off}})
	require.ErrorIs(t, err, roomsensor.ErrNotStorable)

	_, err = open(t, "postgres://nobody@127.0.0.1:1/none", store.Ingest).WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{off}})
	require.NotErrorIs(t, err, roomsensor.ErrNotStorable)
	requireCode(t, err, roomsensor.CodeOverloaded)
}

// A batch is one transaction: where a part of it fails, nothing of it is there.
func TestBatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bad := co2(f.device, "2026-01-01T00:00:00Z", 1)
	bad.MeasuredAt = time.Date(-20000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{
		Rows:    []roomsensor.DeviceMeasurement{bad, co2(f.device, "2026-01-01T00:00:00Z", 1)},
		Rejects: []roomsensor.Reject{{Arrival: roomsensor.Arrival{At: time.Now(), Sequence: 7}, Reason: roomsensor.ReasonUnknownUnit}},
	})
	require.Error(t, err)
	require.Empty(t, f.readAll(t, f.device))
	rejects, err := f.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, rejects)
}

// Decision 39: the newest arrival wins whatever the order, and each part is of
// the newest arrival that carries it.
func TestDeviceSeenIsOrderFree(t *testing.T) {
	t.Parallel()
	f := setup(t)
	base := at("2026-01-01T00:00:00Z")
	rapid.Check(t, func(rt *rapid.T) {
		device := uuid.New()
		f.exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:9')", device, f.team)
		seen := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) roomsensor.DeviceSeen {
			return drawSeen(rt, device, base)
		}), 1, 6).Draw(rt, "seen")
		for _, s := range append(slices.Clone(seen), seen...) {
			_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Seen: []roomsensor.DeviceSeen{s}})
			require.NoError(rt, err)
		}
		inOrder, err := f.Device(t.Context(), f.team, device)
		require.NoError(rt, err)

		f.exec(t, `UPDATE devices SET last_seen_at = NULL, rssi_dbm = NULL, signal_bars = NULL, signal_at = NULL,
			firmware_version = NULL, firmware_at = NULL WHERE id = $1`, device)
		for _, s := range rapid.Permutation(seen).Draw(rt, "permuted") {
			_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Seen: []roomsensor.DeviceSeen{s}})
			require.NoError(rt, err)
		}
		permuted, err := f.Device(t.Context(), f.team, device)
		require.NoError(rt, err)
		require.Equal(rt, inOrder, permuted)
		newest := slices.MaxFunc(seen, func(a, b roomsensor.DeviceSeen) int { return a.LastSeenAt.Compare(b.LastSeenAt) })
		require.True(rt, permuted.LastSeenAt.Equal(newest.LastSeenAt))
	})
}

func drawSeen(rt *rapid.T, device uuid.UUID, base time.Time) roomsensor.DeviceSeen {
	arrival := base.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "arrival")) * time.Second)
	s := roomsensor.DeviceSeen{DeviceID: device, LastSeenAt: arrival}
	if rapid.Bool().Draw(rt, "signal") {
		s.SignalAt, s.Signal = arrival, &roomsensor.Signal{}
		if rapid.Bool().Draw(rt, "rssi") {
			s.Signal.RSSI = new(rapid.Int32Range(-90, -88).Draw(rt, "dBm"))
		}
		if rapid.Bool().Draw(rt, "bars") {
			s.Signal.Bars = new(rapid.Int16Range(0, 2).Draw(rt, "n"))
		}
	}
	if rapid.Bool().Draw(rt, "firmware") {
		s.FirmwareAt, s.Firmware = arrival, new(rapid.SampledFrom([]string{"1.0.0", "1.0.1"}).Draw(rt, "version"))
	}
	return s
}

// Decision 41: a redelivery makes no second reject, and a replay renews its time.
func TestRejectsAreKeptOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	team := uuid.New()
	reject := roomsensor.Reject{
		Arrival: roomsensor.Arrival{At: at("2026-01-01T00:00:00.123456Z"), Sequence: 42, Team: &team},
		Reason:  roomsensor.ReasonUnknownUnit, HardwareID: new("dev:77"), Detail: "No device has this unit.", Payload: []byte("{\x00\xff"),
	}
	other := reject
	other.Reason = roomsensor.ReasonFieldInvalid
	for range 2 {
		_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{reject, other}})
		require.NoError(t, err)
	}
	kept, err := f.Rejects(t.Context(), roomsensor.RejectQuery{
		TeamID: &team, Reason: new(roomsensor.ReasonUnknownUnit), HardwareID: new("dev:77"),
		Since: new(at("2026-01-01T00:00:00Z")), Limit: 10,
	})
	require.NoError(t, err)
	require.Len(t, kept, 1)
	whole, err := f.Reject(t.Context(), kept[0].ID)
	require.NoError(t, err)
	reject.ID = kept[0].ID
	require.Equal(t, reject, whole)

	require.NoError(t, f.WriteReplay(t.Context(), reject.ID, roomsensor.Batch{
		Rows:    []roomsensor.DeviceMeasurement{co2(f.device, "2026-01-01T00:00:00Z", 400)},
		Rejects: []roomsensor.Reject{{Arrival: reject.Arrival, Reason: roomsensor.ReasonNotInstalled}},
	}))
	whole, err = f.Reject(t.Context(), reject.ID)
	require.NoError(t, err)
	require.NotNil(t, whole.ReplayedAt)
	require.Len(t, f.readAll(t, f.device), 1)
	all, err := f.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, all, 2, "a replay that fails makes no second reject")

	_, err = f.Reject(t.Context(), uuid.New())
	var refused roomsensor.RefusedError
	require.ErrorAs(t, err, &refused)
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	f := setup(t)
	swap := at("2026-01-10T00:00:00Z")
	_, err := f.ReplaceHardware(t.Context(), f.device, "dev:2", swap)
	require.NoError(t, err)
	units, err := f.Installations(t.Context(), []string{"dev:1", "dev:2", "dev:3"})
	require.NoError(t, err)
	require.Len(t, units, 2)
	old, fresh := units["dev:1"][0], units["dev:2"][0]
	require.True(t, old.Covers(roomsensor.MeasuredFrom), "since ever")
	require.True(t, old.Covers(swap.Add(-time.Microsecond)))
	require.False(t, old.Covers(swap))
	require.True(t, fresh.Covers(swap))
	require.Equal(t, f.team, fresh.TeamID)
}
