// Package bench compares what the service does with the least that the same
// work can cost, in one run and on one server. Its README says how to run it
// and what the ratios mean.
package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

const (
	devices     = 100
	batchRows   = 2000
	rowsPerTest = 100_000
)

var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// readings are those of a fleet as they arrive: every device, bucket by bucket.
func readings(ids []uuid.UUID, n int) []roomsensor.DeviceMeasurement {
	rows := make([]roomsensor.DeviceMeasurement, n)
	for i := range rows {
		rows[i].DeviceID = ids[i%len(ids)]
		rows[i].MeasuredAt = start.Add(time.Duration(i/len(ids)) * roomsensor.BucketLength)
		for _, m := range roomsensor.Metrics {
			rows[i].Values.Set(m, float32((i*7+int(m))%1000)/10)
		}
	}
	return rows
}

type subject struct {
	store *store.Store
	pool  *pgxpool.Pool
	ids   []uuid.UUID
}

func setup(b *testing.B) *subject {
	b.Helper()
	url := dbtest.New(b).URL
	s, err := store.Open(b.Context(), url, store.Ingest)
	require.NoError(b, err)
	b.Cleanup(s.Close)
	pool, err := pgxpool.New(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	ids := make([]uuid.UUID, devices)
	for i := range ids {
		ids[i] = uuid.New()
	}
	return &subject{store: s, pool: pool, ids: ids}
}

// upsert stores rows as a worker does: batches, each sorted by key.
func (s *subject) upsert(b *testing.B, rows []roomsensor.DeviceMeasurement) {
	b.Helper()
	for batch := range slices.Chunk(rows, batchRows) {
		sorted := slices.Clone(batch)
		slices.SortFunc(sorted, func(x, y roomsensor.DeviceMeasurement) int {
			if x.DeviceID != y.DeviceID {
				return slices.Compare(x.DeviceID[:], y.DeviceID[:])
			}
			return x.MeasuredAt.Compare(y.MeasuredAt)
		})
		_, err := s.store.WriteBatch(b.Context(), roomsensor.Batch{Rows: sorted})
		require.NoError(b, err)
	}
}

// copyFrom is the floor: the same rows into the same table, with no handling of
// what is there already.
func (s *subject) copyFrom(b *testing.B, rows []roomsensor.DeviceMeasurement) {
	b.Helper()
	for batch := range slices.Chunk(rows, batchRows) {
		_, err := s.pool.CopyFrom(b.Context(), pgx.Identifier{"readings"},
			[]string{"device_id", "bucket_at", "measured_at", "co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"},
			pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) {
				row := &batch[i]
				values := []any{row.DeviceID, row.Bucket(), row.MeasuredAt}
				for _, m := range roomsensor.Metrics {
					x, _ := row.Values.Get(m)
					values = append(values, x)
				}
				return values, nil
			}))
		require.NoError(b, err)
	}
}

func (s *subject) requireRows(b *testing.B, want int) {
	b.Helper()
	var got int
	require.NoError(b, s.pool.QueryRow(b.Context(), "SELECT count(*) FROM readings").Scan(&got))
	require.Equal(b, want, got)
}

// BenchmarkW5 is the bulk upsert against CopyFrom into the same table: new rows,
// and the same rows delivered again. Rows a second are comparable within one
// run alone.
func BenchmarkW5(b *testing.B) {
	b.Run("copyfrom", func(b *testing.B) { measure(b, (*subject).copyFrom, nil) })
	b.Run("upsert-new", func(b *testing.B) { measure(b, (*subject).upsert, nil) })
	b.Run("upsert-redelivered", func(b *testing.B) { measure(b, (*subject).upsert, (*subject).upsert) })
}

type workload func(*subject, *testing.B, []roomsensor.DeviceMeasurement)

// measure times work on a fleet's rows, each time on a fresh database, after
// what has to happen before it.
func measure(b *testing.B, work, before workload) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		s := setup(b)
		rows := readings(s.ids, rowsPerTest)
		if before != nil {
			before(s, b, rows)
		}
		b.StartTimer()
		work(s, b, rows)
		b.StopTimer()
		s.requireRows(b, rowsPerTest)
		b.StartTimer()
	}
	b.ReportMetric(rowsPerTest*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
