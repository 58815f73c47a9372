package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

// insertMonth inserts devices up to a number, with a month of readings each, and updates the statistics of the planner.
// It returns the ids of the devices.
func (f *fixture) insertMonth(t *testing.T, devices int) []uuid.UUID {
	t.Helper()
	f.Exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, $2) i`, f.TeamID, devices)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d.id, $1::timestamptz + i * INTERVAL '30 minutes', i FROM generate_series(0, 48 * 30 - 1) i, devices d`, exportFrom)
	f.Exec(t, "ANALYZE")
	names, err := f.DeviceNames(t.Context(), f.TeamID)
	require.NoError(t, err)
	ids := make([]uuid.UUID, len(names))
	for i := range names {
		ids[i] = names[i].ID
	}
	return ids
}

// TestHardwareListPlan checks that installations are found with the B-tree of units, not with the GiST index of the
// exclusion constraint and not by reading the table, also before the planner has statistics of a new fleet.
func TestHardwareListPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, "ALTER TABLE device_hardware SET (autovacuum_enabled = off)")
	f.Exec(t, `WITH d AS (
			INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:9' || i * 7919 % 5000 FROM generate_series(1, 5000) i
			RETURNING id, hardware_id)
		INSERT INTO device_hardware (hardware_id, device_id) SELECT hardware_id, id FROM d`, f.TeamID)
	for _, statistics := range []string{"without", "with"} {
		if statistics == "with" {
			f.Exec(t, "ANALYZE")
		}
		conn := f.PlanConn(t)
		conn.Check(t, func(n int) error {
			var units []string
			for i := range 50 {
				units = append(units, fmt.Sprint("dev:9", 50*n+i))
			}
			_, err := db.New().HardwareList(t.Context(), conn, units)
			return err
		}, func(p *storetest.Plan) {
			var indexes []string
			p.Each(func(node *storetest.Plan) {
				require.NotEqual(t, "Seq Scan", node.Type, statistics)
				if strings.HasPrefix(node.Index, "device_hardware") {
					indexes = append(indexes, node.Index)
				}
			})
			require.Equal(t, []string{"device_hardware_unit_idx"}, indexes, statistics)
		})
	}
}

// TestOpenAssignmentPlan checks that lists of devices find open assignments with the index of these, not with the GiST index
// of the exclusion constraint.
func TestOpenAssignmentPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const teams, ofTeam = 1000, 10
	f.Exec(t, `WITH t AS (INSERT INTO teams (name) SELECT 'Team ' || i FROM generate_series(1, $1) i RETURNING id), d AS (
			INSERT INTO devices (team_id, hardware_id) SELECT id, 'dev:' || gen_random_uuid() FROM t, generate_series(1, $2) RETURNING id)
		INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', $3 FROM d`, teams, ofTeam, exportFrom)
	f.Exec(t, "ANALYZE")
	rows, err := f.SQL.Query(t.Context(), `SELECT team_id, array_agg(id) FROM devices GROUP BY team_id HAVING count(*) > 1`)
	require.NoError(t, err)
	type team struct {
		ID      uuid.UUID
		Devices []uuid.UUID
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[team])
	require.NoError(t, err)
	conn := f.PlanConn(t)
	for name, run := range map[string]func(*team) error{
		"DeviceList": func(of *team) error {
			_, err := db.New().DeviceList(t.Context(), conn, db.DeviceListParams{TeamID: of.ID, Metadata: []byte("{}"), Most: 100})
			return err
		},
		"CurrentDeviceList": func(of *team) error {
			p := db.CurrentDeviceListParams{TeamID: of.ID, Metadata: []byte("{}"), Most: 100}
			_, err := db.New().CurrentDeviceList(t.Context(), conn, p)
			return err
		},
	} {
		conn.Check(t, func(n int) error { return run(&list[n]) }, func(p *storetest.Plan) {
			p.Each(func(node *storetest.Plan) {
				if node.Relation == "assignments" {
					require.Equal(t, "Index Scan on assignments_open_idx", node.Type+" on "+node.Index, name)
				}
			})
		})
	}
}

// TestDeviceHeartbeatUpdatePlan checks that workers lock devices in the order of their ids, in small and large fleets: each
// device is found with the primary key, for one id after the other.
func TestDeviceHeartbeatUpdatePlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, devices := range []int{2, 100, 5000} {
		f.Exec(t, "DELETE FROM device_hardware")
		f.Exec(t, "DELETE FROM devices")
		f.Exec(t, "INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(1, $2) i", f.TeamID, devices)
		f.Exec(t, "VACUUM ANALYZE devices, device_state")
		names, err := f.DeviceNames(t.Context(), f.TeamID)
		require.NoError(t, err)
		conn := f.PlanConn(t)
		conn.Check(t, func(int) error {
			var ids []uuid.UUID
			for i := range min(len(names), 1000) {
				ids = append(ids, names[i].ID)
			}
			p := heartbeats(ids)
			return pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if err := db.New().WorkerSet(t.Context(), tx); err != nil {
					return err
				}
				conn.Plans = nil
				rows, err := db.New().DeviceHeartbeatUpdate(t.Context(), tx, p)
				var updated []uuid.UUID
				for i := range rows {
					updated = append(updated, rows[i].DeviceID)
				}
				require.Equal(t, p.DeviceIds, updated)
				return err
			})
		}, func(p *storetest.Plan) {
			p.Each(func(node *storetest.Plan) {
				if node.Relation == "device_state" && node.Type != "ModifyTable" {
					require.Equal(t, "Index Scan on device_state_pkey", node.Type+" on "+node.Index)
				}
			})
		})
	}
}

// TestDeviceHeartbeatUpdateColumnstore checks that the reading of each device is searched by the device, also if the chunks
// are in the columnstore, which seem to cost nothing.
func TestDeviceHeartbeatUpdateColumnstore(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	f := setup(t)
	ids := f.insertMonth(t, 60)
	f.Exec(t, "SELECT compress_chunk(c) FROM show_chunks('readings') c")
	f.Exec(t, "ANALYZE")
	p := heartbeats(ids)
	p.WindowFrom, p.WindowTo = exportFrom, exportFrom.AddDate(0, 0, 30)
	conn := f.PlanConn(t)
	conn.Check(t, func(int) error {
		return pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
			if err := db.New().WorkerSet(t.Context(), tx); err != nil {
				return err
			}
			conn.Plans = nil
			_, err := db.New().DeviceHeartbeatUpdate(t.Context(), tx, p)
			return err
		})
	}, func(p *storetest.Plan) {
		p.Each(func(node *storetest.Plan) {
			if strings.HasPrefix(node.Relation, "compress_hyper_") {
				require.Contains(t, node.IndexCond+node.Filter, "device_id")
			}
		})
	})
}

// heartbeats returns the parameters for devices whose readings in the transaction are of one bucket.
func heartbeats(ids []uuid.UUID) (p db.DeviceHeartbeatUpdateParams) {
	for _, id := range ids {
		p.DeviceIds, p.NewestAt = append(p.DeviceIds, id), append(p.NewestAt, exportFrom)
		p.OldestAt = append(p.OldestAt, exportFrom)
		p.SeenAt, p.SignalAt = append(p.SeenAt, exportFrom), append(p.SignalAt, time.Time{})
		p.RssiDbm, p.SignalBars = append(p.RssiDbm, 0), append(p.SignalBars, 0)
		p.FirmwareAt, p.Firmware = append(p.FirmwareAt, time.Time{}), append(p.Firmware, "")
	}
	return p
}

// TestReadingListPlan checks that a page, and the buckets that gaps are searched in, are a backward scan of the primary
// key, without a sort.
func TestReadingListPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.insertMonth(t, 60)
	conn := f.PlanConn(t)
	for _, query := range []string{db.ReadingList, db.ReadingBucketList} {
		conn.Check(t, func(n int) error {
			to := exportFrom.AddDate(0, 0, 30-n)
			rows, err := conn.Query(t.Context(), query, ids[n], f.TeamID, to.AddDate(0, 0, -7), to, 100)
			rows.Close()
			return err
		}, func(p *storetest.Plan) { requireOnlyKeyScans(t, p, "Backward") })
	}
}

// requireOnlyKeyScans checks that a plan reads chunks by their primary key only, in a direction, and sorts nothing.
func requireOnlyKeyScans(t *testing.T, p *storetest.Plan, direction string) {
	t.Helper()
	scans := 0
	p.Each(func(node *storetest.Plan) {
		require.NotContains(t, node.Type, "Sort")
		if !strings.HasPrefix(node.Relation, "_hyper_") {
			return
		}
		scans++
		require.Contains(t, []string{"Index Scan", "Index Only Scan"}, node.Type)
		require.True(t, strings.HasSuffix(node.Index, "readings_pkey"), node.Index)
		require.Equal(t, direction, node.Direction)
	})
	require.Positive(t, scans)
}

// TestReadingExportPlan checks that an export of few devices scans indexes of the chunks in its window only, and sorts
// nothing.
func TestReadingExportPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.insertMonth(t, 60)
	conn := f.PlanConn(t)
	_, err := conn.Exec(t.Context(), "SET plan_cache_mode = force_custom_plan") // As Export does.
	require.NoError(t, err)
	week := roomsensor.Window{From: exportFrom.AddDate(0, 0, 10), To: exportFrom.AddDate(0, 0, 11)}
	args := []any{f.TeamID, ids[:3], week.From, week.To}
	for sql, args := range map[string][]any{
		db.ReadingExport:         append(slices.Clone(args), nil),
		db.ReadingExportIngested: append(slices.Clone(args), "crm-7"),
		db.ReadingCount:          append(slices.Clone(args), nil, 250_001),
		db.ReadingCountLines:     {week.From, f.TeamID, ids[:3], week.To, nil, 250_001},
		db.ReadingGetExtent:      {week.From, week.To, f.TeamID, ids[:3]},
		db.ReadingListParts: {
			ids[:3], slices.Repeat([]time.Time{week.From}, 3), slices.Repeat([]time.Time{week.To}, 3), week.From, week.To, f.TeamID,
		},
	} {
		conn.Check(t, func(int) error {
			rows, err := conn.Query(t.Context(), sql, args...)
			rows.Close()
			return err
		}, func(p *storetest.Plan) { requireFewChunks(t, p) })
	}
}

// TestReadingIsNewPlan checks that the search for stored rows is one scan of the primary key per device.
func TestReadingIsNewPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := f.insertMonth(t, 40)
	conn := f.PlanConn(t)
	from := exportFrom.AddDate(0, 0, 40) // After all readings, so that no row ends the search early.
	p := db.ReadingIsNewParams{DeviceIds: ids[:30], WindowFrom: exportFrom.AddDate(0, 0, 28), WindowTo: from.AddDate(0, 0, 3)}
	for range p.DeviceIds {
		p.FirstAt, p.LastAt = append(p.FirstAt, from), append(p.LastAt, p.WindowTo)
	}
	_, err := conn.Exec(t.Context(), "SET roomsensor.ingested_at = '2026-01-01 00:00:00Z'")
	require.NoError(t, err)
	conn.Check(t, func(int) error {
		isNew, err := db.New().ReadingIsNew(t.Context(), conn, p)
		require.False(t, isNew, "the time of the write is not now()")
		return err
	}, func(p *storetest.Plan) { requireOnlyKeyScans(t, p, "Forward") })
}

// requireFewChunks checks that a plan scans indexes of at most two chunks and sorts nothing.
func requireFewChunks(t *testing.T, p *storetest.Plan) {
	t.Helper()
	chunks := map[string]bool{}
	p.Each(func(node *storetest.Plan) {
		require.NotContains(t, node.Type, "Sort")
		if strings.HasPrefix(node.Relation, "_hyper_") {
			require.NotEqual(t, "Seq Scan", node.Type)
			chunks[node.Relation] = true
		}
	})
	require.NotEmpty(t, chunks)
	require.LessOrEqual(t, len(chunks), 2)
}

// TestRateWindowHitPlanEmpty checks that a session that planned the count of requests while the tables were empty, as
// after a quiet night, uses their indexes once they are not.
func TestRateWindowHitPlanEmpty(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, "VACUUM ANALYZE rate_windows, rate_counters")
	conn := f.PlanConn(t)
	hit := func(n int) error {
		_, err := db.New().RateWindowHit(t.Context(), conn, db.RateWindowHitParams{
			KeyIds: []string{fmt.Sprintf("key %d", n)}, Hits: []int32{2},
		})
		return err
	}
	conn.Check(t, hit, func(p *storetest.Plan) {
		p.Each(func(node *storetest.Plan) {
			require.False(t, node.Relation != "" && node.Type == "Seq Scan", node.Relation)
		})
	})
}

// TestRateWindowHitPlan checks that requests are counted, and the rows of idle keys deleted, without a sequential scan of
// the requests, and that the number of statements does not depend on how many requests left the window.
func TestRateWindowHitPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO rate_counters SELECT 'key ' || i, 600, 0 FROM generate_series(1, 1000) i`)
	f.Exec(t, `INSERT INTO rate_windows SELECT 'key ' || i, slot, now() - INTERVAL '1 hour'
		FROM generate_series(1, 50) i, generate_series(0, 599) slot`)
	f.Exec(t, "ANALYZE")
	conn := f.PlanConn(t)
	requireIndexes := func(p *storetest.Plan) {
		p.Each(func(node *storetest.Plan) {
			if node.Relation == "rate_windows" {
				require.NotEqual(t, "Seq Scan", node.Type)
			}
		})
	}
	conn.Check(t, func(n int) error {
		_, err := db.New().RateWindowHit(t.Context(), conn, db.RateWindowHitParams{
			KeyIds: []string{fmt.Sprintf("key %d", n+1)}, Hits: []int32{2},
		})
		// 20 steps of the search, and 6 other statements.
		require.LessOrEqual(t, len(conn.Plans), 26)
		return err
	}, func(p *storetest.Plan) {
		requireIndexes(p)
		p.Each(func(node *storetest.Plan) {
			require.False(t, node.Relation == "rate_counters" && node.Type == "Seq Scan")
		})
	})
	f.Exec(t, `UPDATE rate_counters SET last_hit_at = now() - INTERVAL '1 hour'`)
	conn.Check(t, func(int) error {
		_, err := db.New().RateWindowPurge(t.Context(), conn, db.RateWindowPurgeParams{MostKeys: 1})
		return err
	}, requireIndexes)
}
