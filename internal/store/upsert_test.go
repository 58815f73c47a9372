package store_test

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
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
