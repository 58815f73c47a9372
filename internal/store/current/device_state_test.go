package current_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// TestDeviceStateChunk checks that the state has the number of the chunk of the newest reading, which a restored dump
// keeps, for each kind of writer.
func TestDeviceStateChunk(t *testing.T) {
	t.Parallel()
	f := setup(t)
	requireNumber := func(message string) {
		t.Helper()
		require.Equal(t, 1, f.Number(t, `SELECT count(*) FROM device_state s JOIN timescaledb_information.chunks c
			ON c.hypertable_name = 'readings' AND s.bucket_at >= c.range_start AND s.bucket_at < c.range_end
			WHERE c.chunk_name LIKE '%\_' || s.chunk || '\_chunk'`), message)
	}
	f.WriteRows(t, co2(f.DeviceID, "2026-03-04T00:00:00Z", 1))
	requireNumber("a worker")
	f.Exec(t, "INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-06-04Z')", f.DeviceID)
	requireNumber("another program")
	f.Exec(t, "DELETE FROM device_hardware")
	f.Exec(t, "DELETE FROM devices")
	f.Exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:1')", f.DeviceID, f.TeamID)
	requireNumber("a device that is inserted after its readings")
}

// TestDeviceStateConcurrent checks that the newest readings are exact after workers and other programs wrote at once, and
// that no worker and no import fails because they wait for each other.
func TestDeviceStateConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.URL, store.Ingest)
	ids := []uuid.UUID{f.DeviceID, f.NewDevice(t, "dev:2"), f.NewDevice(t, "dev:3")}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) // As a batch is sorted.
	const seed = 1
	var writers errgroup.Group
	each := func(stream uint64, do func(bucket time.Time) error) {
		random := rand.New(rand.NewPCG(seed, stream))
		writers.Go(func() error {
			for range 40 {
				bucket := at("2026-03-04T00:00:00Z").Add(time.Duration(random.IntN(3*288)) * roomsensor.BucketLength)
				if err := do(bucket); err != nil {
					return err
				}
			}
			return nil
		})
	}
	write := func(bucket time.Time) error {
		var rows []roomsensor.DeviceMeasurement
		for _, id := range ids {
			rows = append(rows, co2(id, roomsensor.FormatTime(bucket), 400))
		}
		_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
		return err
	}
	exec := func(sql string) func(time.Time) error {
		return func(bucket time.Time) error {
			_, err := f.SQL.Exec(t.Context(), fmt.Sprintf(sql, bucket.Format(time.RFC3339)))
			return err
		}
	}
	each(1, write)
	each(2, write)
	// In the order of workers: which rows of readings a program locks first is its own affair.
	each(3, exec(`INSERT INTO readings (device_id, bucket_at) SELECT id, '%s' FROM devices ORDER BY id ON CONFLICT DO NOTHING`))
	each(4, exec(`DELETE FROM readings WHERE ctid IN (SELECT ctid FROM readings WHERE bucket_at = '%s' ORDER BY device_id FOR UPDATE)`))
	require.NoError(t, writers.Wait())
	f.requireCurrent(t.Context(), t, now, "after all of them")
}
