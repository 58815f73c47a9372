package store_test

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// company is enough rows for a batch to be copied instead of sent as arrays.
func company(n int) []roomsensor.DeviceMeasurement {
	id := uuid.New()
	rows := make([]roomsensor.DeviceMeasurement, n)
	for i := range rows {
		rows[i].DeviceID = id
		rows[i].MeasuredAt = exportFrom.Add(time.Duration(i) * roomsensor.BucketLength)
	}
	return rows
}

func inOrder(a, b roomsensor.DeviceMeasurement) int {
	if order := bytes.Compare(a.DeviceID[:], b.DeviceID[:]); order != 0 {
		return order
	}
	return a.MeasuredAt.Compare(b.MeasuredAt)
}

// drawBatch is what one device delivers at once: each bucket once.
func drawBatch(rt *rapid.T) []roomsensor.DeviceMeasurement {
	values := rapid.OneOf(rapid.SampledFrom([]float32{
		0, float32(math.Copysign(0, -1)), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1, -40,
	}), rapid.Float32())
	var batch []roomsensor.DeviceMeasurement
	for _, bucket := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 6, rapid.ID).Draw(rt, "buckets") {
		var m roomsensor.DeviceMeasurement
		m.MeasuredAt = exportFrom.Add(time.Duration(bucket)*roomsensor.BucketLength +
			time.Duration(rapid.Int64Range(0, 3).Draw(rt, "microseconds"))*time.Microsecond)
		for _, metric := range roomsensor.Metrics {
			if rapid.Bool().Draw(rt, "present") {
				m.Values.Set(metric, values.Draw(rt, "value"))
			}
		}
		batch = append(batch, m)
	}
	return batch
}

// Decisions 37 and 38: a batch that is copied changes what the same batch
// changes that is sent as arrays.
func TestCopiedRowsFareLikeArrays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.url, store.Ingest)
	others := company(2_500)
	write := func(rt *rapid.T, device uuid.UUID, batch, others []roomsensor.DeviceMeasurement) int64 {
		rows := slices.Clone(others)
		for _, m := range batch {
			m.DeviceID = device
			rows = append(rows, m)
		}
		slices.SortFunc(rows, inOrder)
		changed, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
		require.NoError(rt, err)
		return changed
	}
	f.write(t, others...)

	rapid.Check(t, func(rt *rapid.T) {
		few, many := f.unregistered(t), f.unregistered(t)
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			batch := drawBatch(rt)
			require.Equal(rt, write(rt, few, batch, nil), write(rt, many, batch, others), "rows that changed")
		}
		asArrays, asCopied := f.readAll(t, few), f.readAll(t, many)
		require.Len(rt, asCopied, len(asArrays))
		for i := range asArrays {
			require.Equal(rt, asArrays[i].BucketAt, asCopied[i].BucketAt)
			require.Equal(rt, asArrays[i].Values, asCopied[i].Values)
		}
	})
}

// unregistered is a device whose unit nobody else has.
func (f *fixture) unregistered(t *testing.T) uuid.UUID {
	t.Helper()
	id := uuid.New()
	f.exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:9')", id, f.team)
	return id
}

// What was copied for a batch that failed, or that was stored, is no part of
// the next one over the same connection.
func TestNothingCopiedStaysBehind(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.url, store.Ingest)
	rows := company(2_500)
	refused := slices.Clone(rows)
	refused[500].DeviceID = uuid.UUID{}
	refused[500].MeasuredAt = roomsensor.Forever.AddDate(300_000, 0, 0) // After what a timestamp can hold.

	_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: refused})
	require.ErrorIs(t, err, roomsensor.ErrNotStorable)
	one := co2(f.device, "2026-01-01T00:00:00Z", 400)
	for _, batch := range [][]roomsensor.DeviceMeasurement{{one}, rows, {one}} {
		_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: batch})
		require.NoError(t, err)
	}
	var stored int
	require.NoError(t, f.sql.QueryRow(t.Context(), "SELECT count(*) FROM readings").Scan(&stored))
	require.Equal(t, len(rows)+1, stored)
}

// delivered are the readings of some devices that were away, sorted by key.
func delivered(buckets int, devices ...uuid.UUID) (rows []roomsensor.DeviceMeasurement) {
	for _, id := range devices {
		for i := range buckets {
			row := roomsensor.DeviceMeasurement{DeviceID: id}
			row.MeasuredAt = exportFrom.Add(time.Duration(i) * roomsensor.BucketLength)
			row.Values.Set(roomsensor.CO2, float32(i))
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, inOrder)
	return rows
}

// Whether rows are copied straight into the table, because nothing is there, or
// meet something, the table is the same and so is the count of what changed.
func TestNewRowsAreCopiedStraight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		there   func(rows []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement
		changed int64
	}{
		"nothing is there":          {func([]roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return nil }, 3_000},
		"the first is there":        {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[:1] }, 2_999},
		"one in between":            {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[1_700:1_701] }, 2_999},
		"the last":                  {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r[2_999:] }, 2_999},
		"all of them":               {func(r []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return r }, 0},
		"buckets before and behind": {func([]roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement { return around() }, 3_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			worker := open(t, f.url, store.Ingest)
			rows := delivered(1_500, f.device, f.newDevice(t, "dev:2"))
			there := test.there(rows)
			for i := range there {
				if there[i].DeviceID == (uuid.UUID{}) {
					there[i].DeviceID = f.device
				}
			}
			if len(there) > 0 {
				f.write(t, there...)
			}
			changed, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			require.NoError(t, err)
			require.Equal(t, test.changed, changed)
			again, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			require.NoError(t, err)
			require.Zero(t, again)
			stored := 0
			for _, r := range f.readAll(t, f.device) {
				if x, ok := valueOf(r, roomsensor.CO2); ok && x >= 0 {
					require.Equal(t, exportFrom.Add(time.Duration(x)*roomsensor.BucketLength), r.BucketAt)
					stored++
				}
			}
			require.Equal(t, 1_500, stored)
		})
	}
}

// around are readings of a device just before and just behind those of delivered(1_500).
func around() []roomsensor.DeviceMeasurement {
	rows := make([]roomsensor.DeviceMeasurement, 2)
	rows[0].MeasuredAt = exportFrom.Add(-roomsensor.BucketLength)
	rows[1].MeasuredAt = exportFrom.Add(1_500 * roomsensor.BucketLength)
	for i := range rows {
		rows[i].Values.Set(roomsensor.CO2, -1)
	}
	return rows
}

// A worker that took rows for new, of which another one stores some before it
// is done, meets them: nothing is refused, and both measurements unite.
func TestRowsThatAnotherWorkerStoresMeanwhileAreMet(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.url, store.Ingest)
	rows := delivered(2_500, f.device)
	f.write(t, delivered(2_500, f.newDevice(t, "dev:2"))...) // A chunk that is being made is waited for as a whole.
	conn, err := pgx.Connect(t.Context(), f.url)             // What activity a transaction sees stands still.
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	other, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at, measured_at, temp_c) VALUES ($1, $2, $2, 21.5)",
		f.device, rows[1_000].MeasuredAt)
	require.NoError(t, err)

	var changed int64
	written := make(chan error, 1)
	go func() {
		var err error
		changed, err = worker.WriteBatch(context.WithoutCancel(t.Context()), roomsensor.Batch{Rows: rows})
		written <- err
	}()
	require.Eventually(t, func() (waits bool) {
		err := f.sql.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'transactionid' AND query LIKE '%COPY readings%')`).Scan(&waits)
		return err == nil && waits
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, <-written)
	require.EqualValues(t, 2_500, changed)
	stored := f.readAll(t, f.device)
	require.Len(t, stored, 2_500)
	met := stored[len(stored)-1-1_000]
	co2, _ := valueOf(met, roomsensor.CO2)
	temp, _ := valueOf(met, roomsensor.Temp)
	require.Equal(t, []float32{1_000, 21.5}, []float32{co2, temp})
}

// Workers that store the same delivery at once store each reading once.
func TestWorkersThatStoreTheSameAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := []uuid.UUID{f.device, f.newDevice(t, "dev:2"), f.newDevice(t, "dev:3")}
	rows := delivered(1_000, devices...)
	var total atomic.Int64
	var workers errgroup.Group
	for range 4 {
		worker := open(t, f.url, store.Ingest)
		workers.Go(func() error {
			changed, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			total.Add(changed)
			return err
		})
	}
	require.NoError(t, workers.Wait())
	require.EqualValues(t, len(rows), total.Load(), "each changed once")
	for _, id := range devices {
		require.Len(t, f.readAll(t, id), 1_000)
	}
}
