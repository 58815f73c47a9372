package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
)

// requireCurrent compares the snapshot of the team that is read together with others, and the one that is read alone,
// with all of its devices and readings. Both share the readings that were kept.
func (f *fixture) requireCurrent(ctx context.Context, t require.TestingT, hours roomsensor.Window, message string) {
	q := roomsensor.DeviceQuery{Limit: 100}
	want, err := f.CurrentDevices(ctx, f.team, q, hours)
	require.NoError(t, err)
	together, err := f.CurrentTeams(ctx, []uuid.UUID{f.team}, q, hours)
	require.NoError(t, err)
	if together[0] != nil {
		require.Equal(t, want, together[0], message)
	}
	alone, _, err := f.CurrentTeam(ctx, f.team, q, hours)
	require.NoError(t, err)
	require.Equal(t, want, alone, message)
	f.requireSums(ctx, t, hours, want, message)
}

// requireSums compares counts and sums of CO2 with those of all readings in the hours, which need no hourly aggregate.
func (f *fixture) requireSums(
	ctx context.Context, t require.TestingT, hours roomsensor.Window, devices []roomsensor.CurrentDevice, message string,
) {
	rows, err := f.sql.Query(ctx, `SELECT device_id, count(co2_ppm), coalesce(sum(co2_ppm::double precision), 0) FROM readings
		WHERE bucket_at >= $1 AND bucket_at < $2 GROUP BY device_id`, hours.From, hours.To)
	require.NoError(t, err)
	type sum struct {
		Count int64
		Sum   float64
	}
	want := map[uuid.UUID]sum{}
	var id uuid.UUID
	var of sum
	_, err = pgx.ForEachRow(rows, []any{&id, &of.Count, &of.Sum}, func() error { want[id] = of; return nil })
	require.NoError(t, err)
	for i := range devices {
		got := devices[i].Last24h[roomsensor.CO2]
		require.Equal(t, want[devices[i].ID], sum{got.Count, got.Sum}, message) //nolint:testifylint // want is the expected value.
	}
}

// summary has the hours of a snapshot.
var summary = roomsensor.SummaryWindow(at(now))

// writtenDevice is the device whose readings the writers below change.
var writtenDevice = uuid.MustParse("11111111-0000-4000-8000-000000000001")

// sqlWriters change readings or a device as another program does.
var sqlWriters = map[string]string{
	"INSERT":                `INSERT INTO readings (device_id, bucket_at, lux) SELECT id, '2026-03-05 00:05:00Z', 7 FROM devices`,
	"INSERT of a past hour": `INSERT INTO readings (device_id, bucket_at, lux) SELECT id, '2026-03-04 08:00:00Z', 7 FROM devices`,
	"INSERT with REPEATABLE READ": `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
		INSERT INTO readings (device_id, bucket_at, lux) SELECT id, '2026-03-05 00:05:00Z', 7 FROM devices`,
	"COPY":        `COPY readings (device_id, bucket_at) FROM PROGRAM 'echo 11111111-0000-4000-8000-000000000001,2026-03-05 00:25:00Z' CSV`,
	"UPDATE":      `UPDATE readings SET co2_ppm = 7`,
	"DELETE":      `DELETE FROM readings WHERE bucket_at = '2026-03-05 00:10:00Z'`,
	"TRUNCATE":    `TRUNCATE readings`,
	"drop_chunks": `SELECT drop_chunks('readings', older_than => timestamptz '2026-03-05 00:00:00Z')`,
	"a device that is created again": `DELETE FROM devices WHERE hardware_id = 'dev:2'; INSERT INTO devices (id, team_id, hardware_id)
		SELECT '11111111-0000-4000-8000-000000000001', id, 'dev:3' FROM teams`,
	"a change of a device": `UPDATE devices SET display_name = 'Gym'`,
	"an assignment":        `INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', '2026-03-05Z' FROM devices`,
}

// workerWriters are readings that a worker stores.
var workerWriters = map[string]struct {
	measuredAt string
	copied     bool
}{
	"a worker, a new reading":                     {"2026-03-05T00:25:00Z", false},
	"a worker, a late reading of the hour":        {"2026-03-05T00:05:00Z", false},
	"a worker, a later measurement of the bucket": {"2026-03-05T00:14:00Z", false},
	"a worker that copies":                        {"2026-03-05T00:05:00Z", true},
}

// TestCurrentTeamsWriters checks for each kind of writer that the next snapshot shows what it changed.
func TestCurrentTeamsWriters(t *testing.T) {
	t.Parallel()
	for name, sql := range sqlWriters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setupWritten(t).requireShows(t, func(f *fixture) { f.exec(t, sql) })
		})
	}
	for name, w := range workerWriters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupWritten(t)
			if w.copied {
				f.MinCopyRows = 1
			}
			f.requireShows(t, func(f *fixture) { f.write(t, co2(writtenDevice, w.measuredAt, 7)) })
		})
	}
}

// setupWritten returns a fixture with readings of writtenDevice.
func setupWritten(t *testing.T) *fixture {
	t.Helper()
	f := setup(t)
	f.exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:2')`, writtenDevice, f.team)
	f.write(t, co2(writtenDevice, "2026-03-04T07:00:00Z", 500), co2(writtenDevice, "2026-03-05T00:12:00Z", 600),
		co2(writtenDevice, "2026-03-05T00:20:00Z", 700))
	return f
}

// requireShows checks that the next snapshot shows a change.
func (f *fixture) requireShows(t *testing.T, change func(*fixture)) {
	t.Helper()
	f.requireCurrent(t.Context(), t, summary, "before")
	change(f)
	f.requireCurrent(t.Context(), t, summary, "after")
}

// keptReadings are readings of one device, of which snapshots keep what they read. Changes are hidden from the triggers,
// so that a snapshot shows what was read before.
type keptReadings struct {
	*fixture
	hours roomsensor.Window
}

func setupKept(t *testing.T, measurements ...roomsensor.DeviceMeasurement) *keptReadings {
	t.Helper()
	k := &keptReadings{setup(t), summary}
	for i := range measurements {
		measurements[i].DeviceID = k.device
	}
	k.write(t, measurements...)
	return k
}

func (k *keptReadings) add(t *testing.T, measuredAt string, ppm float32) {
	t.Helper()
	k.write(t, co2(k.device, measuredAt, ppm))
}

// hide sets all readings to a value, and forgets the stored hours, so that a snapshot shows what is in memory.
func (k *keptReadings) hide(t *testing.T, ppm float32) {
	t.Helper()
	k.hideOnly(t, ppm)
	k.exec(t, `TRUNCATE current_hours`)
}

// hideOnly sets all readings to a value.
func (k *keptReadings) hideOnly(t *testing.T, ppm float32) {
	t.Helper()
	k.exec(t, fmt.Sprintf(`SET LOCAL session_replication_role = replica; UPDATE readings SET co2_ppm = %v`, ppm))
}

// restart forgets what is in memory.
func (k *keptReadings) restart() { k.LimitKept(1 << 20) }

// requireRead checks the newest reading of the next snapshot, and the sum over its hours.
func (k *keptReadings) requireRead(t *testing.T, message string, wantLatest float32, wantSum float64) {
	t.Helper()
	teams, err := k.CurrentTeams(t.Context(), []uuid.UUID{k.team}, roomsensor.DeviceQuery{Limit: 9}, k.hours)
	require.NoError(t, err)
	latest, _ := teams[0][0].Latest.Values.Get(roomsensor.CO2)
	require.InDelta(t, wantLatest, latest, 0, message)
	require.InDelta(t, wantSum, teams[0][0].Last24h[roomsensor.CO2].Sum, 0, message)
}

// TestCurrentTeamsKeepReadings checks that readings are not read again without a change, that late readings count in the
// past hours after some time (decision 17 i), and that all readings are read again later, which shows what triggers do
// not see.
func TestCurrentTeamsKeepReadings(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-01T00:00:00Z", 500), co2(uuid.Nil, "2026-03-05T00:12:00Z", 600)) // All chunks.
	k.SetKeep(0, time.Hour)
	k.requireRead(t, "first", 600, 600)
	k.hide(t, 6)
	k.SetKeep(time.Hour, time.Hour)
	k.requireRead(t, "all is read again", 6, 6)
	k.hide(t, 7)
	k.requireRead(t, "readings are kept", 6, 6)
	k.add(t, "2026-03-04T12:00:00Z", 900)
	k.requireRead(t, "past hours are kept, but the newest reading and the current hour of a changed device are read", 7, 7)

	k.SetKeep(time.Hour, 0)
	k.hide(t, 8)
	k.requireRead(t, "past hours of a changed device", 7, 7+8)
	k.hide(t, 9)
	k.requireRead(t, "nothing changed since", 7, 7+8)

	k.LimitKept(0)
	k.requireRead(t, "no memory", 9, 9+9)
	k.hide(t, 10)
	k.requireRead(t, "nothing is kept", 10, 10+10)
}

// TestCurrentTeamsKeepDevices checks that devices are not read again without a change. A read of the renamed view fails.
func TestCurrentTeamsKeepDevices(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-05T00:12:00Z", 600))
	k.requireRead(t, "first", 600, 600)
	k.exec(t, `ALTER VIEW device_details RENAME TO hidden`)
	k.requireRead(t, "nothing changed", 600, 600)
	k.exec(t, `UPDATE devices SET display_name = 'Gym'`)
	_, err := k.CurrentTeams(t.Context(), []uuid.UUID{k.team}, roomsensor.DeviceQuery{Limit: 9}, k.hours)
	require.ErrorContains(t, err, "device_details", "the device is read again")
}

// TestCurrentTeamPortions checks that a read of many devices keeps what it has read when nobody waits for it any more,
// and that the next one continues. Each portion has the past hours of one device.
func TestCurrentTeamPortions(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T12:00:00Z", 500))
	second := k.newDevice(t, "dev:2")
	k.write(t, co2(second, "2026-03-04T12:00:00Z", 500))
	k.SetMaxHistories(1)
	q := roomsensor.DeviceQuery{Limit: 9}

	teams, err := k.CurrentTeams(t.Context(), []uuid.UUID{k.team}, q, k.hours)
	require.NoError(t, err)
	require.Nil(t, teams[0], "two devices must be read alone")
	k.hide(t, 6)
	devices, _, err := k.CurrentTeam(t.Context(), k.team, q, k.hours)
	require.NoError(t, err)
	var sums []float64
	for i := range devices {
		sums = append(sums, devices[i].Last24h[roomsensor.CO2].Sum)
	}
	require.ElementsMatch(t, []float64{500, 6}, sums, "one device was read before, and the other one now")

	k.SetKeep(0, time.Hour) // From now on, what a portion reads cannot be used by the next one.
	k.exec(t, `UPDATE readings SET co2_ppm = 7`)
	devices, _, err = k.CurrentTeam(t.Context(), k.team, q, k.hours)
	require.NoError(t, err)
	for i := range devices {
		require.InDelta(t, 7, devices[i].Last24h[roomsensor.CO2].Sum, 0, "the read ends although it starts again each time")
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = k.CurrentTeam(gone, k.team, q, k.hours)
	require.ErrorIs(t, err, context.Canceled)
}

// TestCurrentTeamsAdded checks that only newer readings are read if workers only added these, also those of the end of a
// past hour.
func TestCurrentTeamsAdded(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T22:00:00Z", 100), co2(uuid.Nil, "2026-03-04T23:50:00Z", 200))
	k.SetKeep(time.Hour, 0)
	k.requireRead(t, "first", 200, 300)
	k.hide(t, 1)
	k.add(t, "2026-03-04T23:55:00Z", 400)
	k.requireRead(t, "a past hour", 400, 700)
	k.add(t, "2026-03-05T00:00:00Z", 500)
	k.add(t, "2026-03-05T00:05:00Z", 600)
	k.requireRead(t, "the current hour, in a new chunk", 600, 1800)
	k.add(t, "2026-03-05T01:00:00Z", 800)
	k.requireRead(t, "the hour after the snapshot", 800, 1800)
	k.add(t, "2026-03-05T01:00:01Z", 7)
	k.requireRead(t, "a later measurement of the newest bucket", 7, 1+1+400+500+600)
}

// TestCurrentTeamsNextHour checks that a new hour is known without a read of the past hours.
func TestCurrentTeamsNextHour(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T01:10:00Z", 100), co2(uuid.Nil, "2026-03-04T02:00:00Z", 200),
		co2(uuid.Nil, "2026-03-05T00:50:00Z", 300))
	k.SetKeep(time.Hour, 0)
	k.requireRead(t, "first", 300, 600)
	k.hide(t, 1)
	k.hours = roomsensor.SummaryWindow(at("2026-03-05T01:00:00Z"))
	k.requireRead(t, "the next hour", 300, 500)
	k.add(t, "2026-03-05T00:55:00Z", 400)
	k.add(t, "2026-03-05T01:00:00Z", 500)
	k.requireRead(t, "added in both", 500, 1400)
	k.hours = roomsensor.SummaryWindow(at("2026-03-05T02:00:00Z"))
	k.requireRead(t, "the hour after that, whose past hours were read again", 500, 1+400+500)
	k.hide(t, 2)
	k.hours = roomsensor.SummaryWindow(at("2026-03-05T04:00:00Z"))
	k.requireRead(t, "no snapshot was read for an hour", 2, 2+2+2)
}

// TestCurrentTeamsBounds checks that past hours are read again after latest_bucket_at was set to null, and that late
// readings count after it went back before the current hour.
func TestCurrentTeamsBounds(t *testing.T) {
	t.Parallel()
	f := setupWritten(t)
	f.SetKeep(time.Hour, 0)
	refresh := func() {
		_, _, err := f.RefreshLatest(t.Context(), uuid.Nil)
		require.NoError(t, err)
	}
	refresh()
	f.requireCurrent(t.Context(), t, summary, "first")
	f.exec(t, `SET LOCAL session_replication_role = replica; UPDATE readings SET co2_ppm = 7`)
	f.exec(t, `UPDATE devices SET latest_bucket_at = NULL`)
	f.requireCurrent(t.Context(), t, summary, "without a trigger")

	refresh()
	f.exec(t, `DELETE FROM readings WHERE bucket_at >= '2026-03-05 00:00:00Z'`)
	f.requireCurrent(t.Context(), t, summary, "deleted")
	f.exec(t, `UPDATE devices SET latest_bucket_at = NULL`)
	refresh()
	f.write(t, co2(writtenDevice, "2026-03-04T07:30:00Z", 501))
	f.requireCurrent(t.Context(), t, summary, "late")
}

// TestCurrentTeamsImported checks that a worker's reading counts between latest_bucket_at and an imported reading.
func TestCurrentTeamsImported(t *testing.T) {
	t.Parallel()
	f := setupWritten(t)
	_, _, err := f.RefreshLatest(t.Context(), uuid.Nil)
	require.NoError(t, err)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, '2026-03-05 00:50:00Z', 900)`, writtenDevice)
	f.requireCurrent(t.Context(), t, summary, "imported")
	f.write(t, co2(writtenDevice, "2026-03-05T00:40:00Z", 800))
	f.requireCurrent(t.Context(), t, summary, "before the imported one")
}

// TestCurrentTeamsModel checks that snapshots equal what is read of all devices, whatever is written between them: by
// workers, with SQL, and in transactions of other programs that overlap.
func TestCurrentTeamsModel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.SetKeep(time.Hour, 0) // Sums that may lack changes are not used.
	rapid.Check(t, func(rt *rapid.T) {
		m := f.newCurrentModel(t)
		defer m.rollback()
		f.SetMaxHistories(rapid.SampledFrom([]int{1, 2, 1000}).Draw(rt, "histories"))
		actions := m.actions(t)
		names := slices.Sorted(maps.Keys(actions))
		requireCurrent := func(message string) {
			f.requireCurrent(t.Context(), rt, roomsensor.SummaryWindow(m.now), message)
		}
		requireCurrent("first")
		for range rapid.IntRange(1, 20).Draw(rt, "actions") {
			name := rapid.SampledFrom(names).Draw(rt, "action")
			actions[name](rt)
			if rapid.Bool().Draw(rt, "read") {
				requireCurrent(name)
			}
		}
		requireCurrent("last")
	})
}

// currentModel writes readings of some devices, the last of which need not exist. Only imports write readings of the
// device imported, each another one, so that they do not wait for one another.
type currentModel struct {
	*fixture
	devices  []uuid.UUID
	imported uuid.UUID
	imports  int
	open     []pgx.Tx
	now      time.Time
}

func (f *fixture) newCurrentModel(t *testing.T) *currentModel {
	t.Helper()
	f.exec(t, `TRUNCATE readings; UPDATE foreign_writes SET searched = true; DELETE FROM device_hardware; DELETE FROM assignments; DELETE FROM devices`)
	m := &currentModel{fixture: f, imported: f.newDevice(t, "dev:4"), now: at(now)}
	m.devices = []uuid.UUID{f.newDevice(t, "dev:1"), f.newDevice(t, "dev:2"), uuid.New()}
	f.exec(t, `INSERT INTO readings (device_id, bucket_at)
		VALUES ($1, '2026-03-01 00:00:00Z'), ($1, '2026-03-05 02:00:00Z')`, m.imported)
	return m
}

func (m *currentModel) rollback() {
	for _, tx := range m.open {
		_ = tx.Rollback(context.Background())
	}
}

func (m *currentModel) device(rt *rapid.T) uuid.UUID {
	return rapid.SampledFrom(m.devices).Draw(rt, "device")
}

// bucket returns a bucket of one of some hours, which are counted from the current one on.
func (m *currentModel) bucket(rt *rapid.T, hours ...int) time.Time {
	hour := rapid.SampledFrom(hours).Draw(rt, "hour")
	return m.now.Truncate(time.Hour).Add(time.Duration(hour) * time.Hour).
		Add(time.Duration(rapid.IntRange(0, 11).Draw(rt, "bucket")) * roomsensor.BucketLength)
}

func (m *currentModel) actions(t *testing.T) map[string]func(*rapid.T) {
	t.Helper()
	const current, next, last, past, first, old = 0, 1, -1, -4, -23, -72
	actions := map[string]func(*rapid.T){
		"worker": func(rt *rapid.T) {
			m.upsert(t, rt, m.bucket(rt, current, current, current, next, last, past, first, old))
		},
		"hour": func(*rapid.T) { m.now = m.now.Add(time.Hour) },
		"refresh": func(*rapid.T) {
			_, _, err := m.RefreshLatest(t.Context(), uuid.Nil)
			require.NoError(t, err)
		},
		"forget": func(rt *rapid.T) {
			m.exec(t, `UPDATE devices SET latest_bucket_at = NULL WHERE id = $1`, m.device(rt))
		},
		"insert": func(rt *rapid.T) {
			m.exec(t, `INSERT INTO readings (device_id, bucket_at, temp_c) VALUES ($1, $2, 20) ON CONFLICT DO NOTHING`,
				m.device(rt), m.bucket(rt, current, past, first, old))
		},
		"update": func(rt *rapid.T) {
			m.exec(t, `UPDATE readings SET lux = coalesce(lux, 0) + 1 WHERE device_id = $1`, m.device(rt))
		},
		"delete": func(rt *rapid.T) {
			m.exec(t, `DELETE FROM readings WHERE device_id = $1 AND bucket_at >= $2`, m.device(rt), m.bucket(rt, current, past))
		},
		"import device": func(*rapid.T) {
			m.exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:3') ON CONFLICT DO NOTHING`,
				m.devices[2], m.team)
		},
		"delete device": func(*rapid.T) {
			m.exec(t, `DELETE FROM assignments WHERE device_id = $1`, m.devices[2])
			m.exec(t, `DELETE FROM devices WHERE id = $1`, m.devices[2])
		},
		"change device": func(rt *rapid.T) {
			m.exec(t, `UPDATE devices SET metadata = jsonb_build_object('floor', $2::text) WHERE id = $1`, m.device(rt),
				rapid.StringMatching(`[a-c]`).Draw(rt, "floor"))
		},
		"start assignment": func(rt *rapid.T) {
			m.exec(t, `INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', now() FROM devices d
				WHERE id = $1 AND NOT EXISTS (SELECT FROM assignments a WHERE a.device_id = d.id AND a.ended_at IS NULL)`, m.device(rt))
		},
		"change assignment": func(rt *rapid.T) {
			m.exec(t, `UPDATE assignments SET label = label || '.' WHERE device_id = $1`, m.device(rt))
		},
		"end assignment": func(rt *rapid.T) {
			m.exec(t, `UPDATE assignments SET ended_at = clock_timestamp() WHERE device_id = $1 AND ended_at IS NULL`, m.device(rt))
		},
		"restart":      func(*rapid.T) { m.LimitKept(1 << 20) },
		"begin import": func(rt *rapid.T) { m.beginImport(t, rt) },
		"end import":   func(rt *rapid.T) { m.endImport(t, rt) },
	}
	if dbtest.Edition(t) == postgres.Community {
		// The refresh policy stores the hours up to two days ago. Here, the hours of the snapshot are stored, too.
		actions["store hours"] = func(rt *rapid.T) {
			until := m.now.Truncate(time.Hour).Add(time.Duration(rapid.SampledFrom([]int{current, past, first}).Draw(rt, "until")) * time.Hour)
			m.exec(t, fmt.Sprintf("CALL refresh_continuous_aggregate('readings_hourly', NULL, '%s'::timestamptz)",
				roomsensor.FormatTime(until)))
		}
	}
	return actions
}

// upsert stores a reading as a worker does. Of a device that does not exist, nothing is stored.
func (m *currentModel) upsert(t *testing.T, rt *rapid.T, bucket time.Time) {
	t.Helper()
	row := roomsensor.DeviceMeasurement{DeviceID: m.device(rt)}
	row.MeasuredAt = bucket.Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "second")) * time.Second)
	row.Values.Set(roomsensor.CO2, float32(rapid.IntRange(400, 402).Draw(rt, "ppm")))
	if _, err := m.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{row}}); err != nil {
		requireCode(t, err, roomsensor.CodeOverloaded)
	}
}

func (m *currentModel) beginImport(t *testing.T, rt *rapid.T) {
	t.Helper()
	if len(m.open) == 3 {
		return
	}
	level := rapid.SampledFrom([]pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead}).Draw(rt, "level")
	tx, err := m.sql.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	require.NoError(t, err)
	m.open = append(m.open, tx)
	m.imports++
	_, err = tx.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at, spl_db)
		VALUES ($1, timestamptz '2026-03-05 00:00:00Z' - $2 * INTERVAL '5 minutes', 50)`, m.imported, m.imports)
	require.NoError(t, err)
}

func (m *currentModel) endImport(t *testing.T, rt *rapid.T) {
	t.Helper()
	if len(m.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.open)-1).Draw(rt, "transaction")
	end := m.open[i].Rollback
	if rapid.Bool().Draw(rt, "commit") {
		end = m.open[i].Commit
	}
	require.NoError(t, end(t.Context()))
	m.open = slices.Delete(m.open, i, i+1)
}
