package store_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// now is the time of the snapshots below.
const now = "2026-03-05T00:30:00Z"

// latest returns the buckets of the newest readings as /devices/current shows them.
func (f *fixture) latest(ctx context.Context, t require.TestingT) map[uuid.UUID]time.Time {
	current, err := f.CurrentDevices(ctx, f.team, roomsensor.DeviceQuery{Limit: 100}, roomsensor.SummaryWindow(at(now)))
	require.NoError(t, err)
	together, err := f.CurrentTeams(ctx, []uuid.UUID{uuid.New(), f.team}, roomsensor.DeviceQuery{Limit: 100}, roomsensor.SummaryWindow(at(now)))
	require.NoError(t, err)
	require.Equal(t, []roomsensor.CurrentDevice{}, together[0])
	if together[1] != nil {
		require.Equal(t, current, together[1])
	}
	latest := map[uuid.UUID]time.Time{}
	for i := range current {
		if r := current[i].Latest; r != nil {
			latest[current[i].ID] = r.BucketAt
		}
	}
	return latest
}

// requireLatest compares /devices/current with the plain maximum over the table.
func (f *fixture) requireLatest(ctx context.Context, t require.TestingT, message string) {
	want := map[uuid.UUID]time.Time{}
	rows, err := f.sql.Query(ctx, `SELECT d.id, max(r.bucket_at) FROM devices d JOIN readings r ON r.device_id = d.id
		WHERE d.team_id = $1 GROUP BY 1`, f.team)
	require.NoError(t, err)
	var id uuid.UUID
	var bucket time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &bucket}, func() error {
		want[id] = bucket.UTC()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, want, f.latest(ctx, t), message)
}

// refresh checks all devices.
func refresh(ctx context.Context, t require.TestingT, s *store.Store) {
	_, next, err := s.RefreshLatest(ctx, uuid.Nil)
	require.NoError(t, err)
	require.Equal(t, uuid.Nil, next)
}

// TestCurrentDevicesLatest checks that the newest readings are exact after each of any writes: by workers, with SQL
// inserts, COPY, updates and deletes, after dropped chunks, and before and after workers refreshed the bounds of the
// search.
func TestCurrentDevicesLatest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	copying := open(t, f.url, store.Ingest)
	copying.MinCopyRows = 1
	days := []string{"2016-05-01", "2019-01-01", "2019-01-04", "2024-02-02", "2026-02-20", "2026-03-01", "2026-03-04", "2026-03-05"}

	rapid.Check(t, func(rt *rapid.T) {
		_, err := f.sql.Exec(ctx, `TRUNCATE readings; UPDATE foreign_writes SET searched = true; DELETE FROM device_hardware; DELETE FROM devices`)
		require.NoError(rt, err)
		ids := []uuid.UUID{f.newDevice(t, "dev:1"), f.newDevice(t, "dev:2"), uuid.New()}
		exec := func(sql string, args ...any) {
			if _, err := f.sql.Exec(ctx, sql, args...); err != nil {
				require.Contains(rt, err.Error(), "23505", "moved to a bucket that exists")
			}
		}
		device := func() uuid.UUID { return rapid.SampledFrom(ids).Draw(rt, "device") }
		bucket := func() time.Time {
			return at(rapid.SampledFrom(days).Draw(rt, "day") + "T00:00:00Z").
				Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "bucket")) * roomsensor.BucketLength)
		}
		rows := func(n int) (rows []roomsensor.DeviceMeasurement) {
			id, from := device(), bucket()
			for i := range n {
				m := roomsensor.DeviceMeasurement{DeviceID: id}
				m.MeasuredAt = from.Add(time.Duration(i) * roomsensor.BucketLength)
				rows = append(rows, m)
			}
			return rows
		}
		write := func(s *store.Store, n int) {
			batch := roomsensor.Batch{Rows: rows(n)}
			var exists bool
			require.NoError(rt, f.sql.QueryRow(ctx, `SELECT EXISTS (SELECT FROM devices WHERE id = $1)`, batch.Rows[0].DeviceID).Scan(&exists))
			if _, err := s.WriteBatch(ctx, batch); exists {
				require.NoError(rt, err)
			} else {
				requireCode(rt, err, roomsensor.CodeOverloaded)
			}
		}
		actions := map[string]func(*rapid.T){
			"worker":      func(*rapid.T) { write(f.Store, 2) },
			"worker copy": func(*rapid.T) { write(copying, 40) },
			"insert": func(*rapid.T) {
				exec(`INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2), ($3, $4) ON CONFLICT DO NOTHING`, device(), bucket(), device(), bucket())
			},
			"copy": func(*rapid.T) {
				_, err := f.sql.CopyFrom(ctx, pgx.Identifier{"readings"}, []string{"device_id", "bucket_at"},
					pgx.CopyFromRows([][]any{{device(), bucket()}}))
				if err != nil {
					require.Contains(rt, err.Error(), "23505")
				}
			},
			"change device": func(*rapid.T) { exec(`UPDATE readings SET device_id = $1 WHERE device_id = $2`, device(), device()) },
			"change bucket": func(*rapid.T) {
				exec(`UPDATE readings SET bucket_at = bucket_at + INTERVAL '5 minutes' WHERE bucket_at = $1`, bucket())
			},
			"delete": func(*rapid.T) {
				exec(`DELETE FROM readings WHERE device_id = $1 AND bucket_at >= $2`, device(), bucket())
			},
			"drop chunks": func(*rapid.T) { exec(`SELECT drop_chunks('readings', older_than => $1::timestamptz)`, bucket()) },
			"import device": func(*rapid.T) {
				exec(`INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:3') ON CONFLICT DO NOTHING`, ids[2], f.team)
			},
			"refresh": func(rt *rapid.T) {
				refresh(ctx, rt, f.Store)
				var unknown, ranges int
				require.NoError(rt, f.sql.QueryRow(ctx, `SELECT (SELECT count(*) FROM devices WHERE latest_bucket_at IS NULL),
					(SELECT count(*) FROM foreign_writes WHERE NOT searched)`).Scan(&unknown, &ranges))
				require.Zero(rt, unknown+ranges)
			},
		}
		names := slices.Sorted(maps.Keys(actions))
		for range rapid.IntRange(1, 10).Draw(rt, "actions") {
			name := rapid.SampledFrom(names).Draw(rt, "action")
			actions[name](rt)
			f.requireLatest(ctx, rt, name)
		}
	})
}

// TestLatestConcurrent checks, while workers, SQL, and the refresh of the bounds run at once, that no reading is after
// the bound of its device, except in the imported ranges, in any snapshot.
func TestLatestConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	worker := open(t, f.url, store.Ingest)
	ids := []uuid.UUID{f.device, f.newDevice(t, "dev:2"), f.newDevice(t, "dev:3")}
	const seed = 1
	var writers, checks errgroup.Group
	each := func(stream uint64, do func(device uuid.UUID, bucket time.Time) error) {
		random := rand.New(rand.NewPCG(seed, stream))
		writers.Go(func() error {
			for range 40 {
				bucket := at("2025-01-01T00:00:00Z").Add(time.Duration(random.IntN(20*288)) * roomsensor.BucketLength)
				if err := do(ids[random.IntN(len(ids))], bucket); err != nil {
					return err
				}
			}
			return nil
		})
	}
	write := func(id uuid.UUID, bucket time.Time) error {
		m := roomsensor.DeviceMeasurement{DeviceID: id}
		m.MeasuredAt = bucket
		_, err := worker.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{m}})
		return err
	}
	exec := func(sql string) func(uuid.UUID, time.Time) error {
		return func(id uuid.UUID, bucket time.Time) error {
			_, err := f.sql.Exec(t.Context(), fmt.Sprintf(sql, id, bucket.Format(time.RFC3339)))
			return err
		}
	}
	each(1, write)
	each(2, write)
	each(3, exec(`INSERT INTO readings (device_id, bucket_at) VALUES ('%s', '%s') ON CONFLICT DO NOTHING`))
	each(4, exec(`DELETE FROM readings WHERE device_id = '%s' AND bucket_at >= '%s'`))
	each(5, exec(`UPDATE devices SET latest_bucket_at = NULL WHERE id = '%s'; SELECT '%s'`))
	for range 2 {
		each(6, func(uuid.UUID, time.Time) error {
			_, _, err := worker.RefreshLatest(t.Context(), uuid.Nil)
			return err
		})
	}
	done := make(chan struct{})
	checks.Go(func() error {
		for last := false; ; {
			var beyond int
			err := f.sql.QueryRow(t.Context(), `SELECT count(*) FROM readings r JOIN devices d ON d.id = r.device_id
				WHERE r.bucket_at > d.latest_bucket_at AND NOT EXISTS (
					SELECT FROM foreign_writes i WHERE NOT searched AND r.bucket_at >= i.range_start AND r.bucket_at < i.range_end)`).Scan(&beyond)
			if err != nil || beyond > 0 {
				return fmt.Errorf("%d readings are beyond the bound of their device: %w", beyond, err)
			}
			if last {
				return nil
			}
			select {
			case <-done:
				last = true
			default:
			}
		}
	})
	require.NoError(t, writers.Wait())
	close(done)
	require.NoError(t, checks.Wait())
	f.requireLatest(t.Context(), t, "before the refresh")
	refresh(t.Context(), t, f.Store)
	f.requireLatest(t.Context(), t, "after the refresh")
}

// TestLatestImport checks that readings of other programs are found in each kind of session, and also if the range is
// being searched while the transaction runs.
func TestLatestImport(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2)"
	for name, begin := range map[string]string{
		"a range that is there already": "BEGIN",
		"repeatable read":               "BEGIN ISOLATION LEVEL REPEATABLE READ",
		"without statistics":            "BEGIN; SET LOCAL track_counts = off",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.write(t, co2(f.device, "2016-05-01T00:00:00Z", 1))
			f.exec(t, insert, f.device, "2019-01-01T00:00:00Z")
			conn, err := f.sql.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			for _, bucket := range []string{"2019-01-01T00:05:00Z", "2019-01-01T00:10:00Z"} {
				_, err = conn.Exec(t.Context(), begin)
				require.NoError(t, err)
				_, err = conn.Exec(t.Context(), insert, f.device, bucket)
				require.NoError(t, err)
				refresh(t.Context(), t, f.Store) // It cannot see the row.
				f.requireLatest(t.Context(), t, "before the commit")
				_, err = conn.Exec(t.Context(), "COMMIT")
				require.NoError(t, err)
				f.requireLatest(t.Context(), t, "after the commit")
			}
		})
	}
}

// TestCurrentDevicesOldChunks checks that only the chunk of the newest reading of a silent device is read, and none for a
// device that has no reading, because old chunks are many, and may be locked.
func TestCurrentDevicesOldChunks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.newDevice(t, "dev:2") // Without readings.
	imported := f.insertDevice(t)
	f.write(t, co2(f.device, "2018-05-01T00:00:00Z", 1))
	f.write(t, co2(f.device, "2016-05-01T00:00:00Z", 1))
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2020-05-01Z'), (gen_random_uuid(), '2024-05-01Z')`, imported)
	refresh(t.Context(), t, f.Store)

	lock, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(context.Background()) }()
	for _, around := range []string{"2016-05-01", "2024-05-01"} {
		_, err = lock.Exec(t.Context(), fmt.Sprintf(`DO $$ DECLARE c regclass; BEGIN
			FOR c IN SELECT show_chunks('readings', newer_than => '%[1]s'::timestamptz - INTERVAL '20 days', older_than => '%[1]s'::timestamptz + INTERVAL '20 days')
			LOOP EXECUTE 'LOCK TABLE ' || c; END LOOP; END $$`, around))
		require.NoError(t, err)
	}
	require.Equal(t, map[uuid.UUID]time.Time{
		f.device: at("2018-05-01T00:00:00Z"), imported: at("2020-05-01T00:00:00Z"),
	}, f.latest(t.Context(), t))
}

// TestLatestLocks checks that a worker and a search of the newest reading wait for each other, because neither sees what
// the other one has not committed.
func TestLatestLocks(t *testing.T) {
	t.Parallel()
	const lock = "SELECT FROM devices WHERE id = $1 FOR NO KEY UPDATE"

	t.Run("a worker waits for a search", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		f.exec(t, "UPDATE devices SET latest_bucket_at = '2030-01-01Z'")
		search, err := f.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = search.Rollback(context.Background()) }()
		_, err = search.Exec(t.Context(), lock, f.device)
		require.NoError(t, err)
		var written errgroup.Group
		written.Go(func() error {
			rows := []roomsensor.DeviceMeasurement{co2(f.device, "2025-01-01T00:00:00Z", 1)}
			_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
			return err
		})
		require.Eventually(t, func() bool {
			var waits bool
			require.NoError(t, f.sql.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits))
			return waits
		}, patience, time.Millisecond)
		_, err = search.Exec(t.Context(), "UPDATE devices SET latest_bucket_at = '-infinity'")
		require.NoError(t, err)
		require.NoError(t, search.Commit(t.Context()))
		require.NoError(t, written.Wait())
		f.requireLatest(t.Context(), t, "")
	})

	t.Run("a search passes over the device of a worker", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		f.exec(t, "UPDATE devices SET latest_bucket_at = NULL")
		writes, err := f.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = writes.Rollback(context.Background()) }()
		_, err = writes.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2025-01-01Z')", f.device)
		require.NoError(t, err)
		_, err = writes.Exec(t.Context(), lock, f.device)
		require.NoError(t, err)
		refresh(t.Context(), t, f.Store)
		require.NoError(t, writes.Commit(t.Context()))
		f.exec(t, "UPDATE foreign_writes SET searched = true") // As if a worker had written it.
		f.requireLatest(t.Context(), t, "")
	})
}
