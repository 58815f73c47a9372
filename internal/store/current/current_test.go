package current_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// now is the time of the snapshots below: so early in an hour that no team has hours read for the next one.
var now = at("2026-03-05T00:00:00Z")

// late is the time after the beginning of an hour by which all teams have hours read for the next one.
const late = 59 * time.Minute

// currentTeam reads the snapshot of the team.
func (f *fixture) currentTeam(ctx context.Context, t require.TestingT, now time.Time) []roomsensor.CurrentDevice {
	devices, err := f.CurrentTeam(ctx, f.TeamID, roomsensor.DeviceQuery{Limit: 100}, now)
	require.NoError(t, err)
	return devices
}

// requireCurrent compares the snapshot of the team with a page that knows nothing from before, and both with plain
// statements over the readings.
func (f *fixture) requireCurrent(ctx context.Context, t require.TestingT, now time.Time, message string) {
	got, hours := f.currentTeam(ctx, t, now), roomsensor.SummaryWindow(now)
	want, err := f.CurrentDevices(ctx, f.TeamID, roomsensor.DeviceQuery{Limit: 100}, hours)
	require.NoError(t, err)
	require.Equal(t, want, got, message)
	f.requireLatest(ctx, t, got, message)
	f.requireSums(ctx, t, hours, got, message)
}

// requireLatest compares the newest readings.
func (f *fixture) requireLatest(ctx context.Context, t require.TestingT, devices []roomsensor.CurrentDevice, message string) {
	rows, err := f.SQL.Query(ctx, `SELECT DISTINCT ON (r.device_id) r.device_id, r.bucket_at, r.ingested_at, coalesce(r.co2_ppm, -1)
		FROM readings r ORDER BY r.device_id, r.bucket_at DESC`)
	require.NoError(t, err)
	type newest struct {
		BucketAt, IngestedAt time.Time
		CO2                  float32
	}
	want, got := map[uuid.UUID]newest{}, map[uuid.UUID]newest{}
	var id uuid.UUID
	var n newest
	_, err = pgx.ForEachRow(rows, []any{&id, &n.BucketAt, &n.IngestedAt, &n.CO2}, func() error {
		if slices.ContainsFunc(devices, func(d roomsensor.CurrentDevice) bool { return d.ID == id }) {
			want[id] = newest{n.BucketAt.UTC(), n.IngestedAt.UTC(), n.CO2}
		}
		return nil
	})
	require.NoError(t, err)
	for i := range devices {
		if r := devices[i].Latest; r != nil {
			co2, ok := r.Values.Get(roomsensor.CO2)
			if !ok {
				co2 = -1
			}
			got[devices[i].ID] = newest{r.BucketAt, r.IngestedAt, co2}
		}
	}
	require.Equal(t, want, got, message)
}

// requireSums compares the statistics of all metrics.
func (f *fixture) requireSums(
	ctx context.Context, t require.TestingT, hours roomsensor.Window, devices []roomsensor.CurrentDevice, message string,
) {
	want := map[uuid.UUID]roomsensor.Stats{}
	for _, m := range roomsensor.Metrics {
		rows, err := f.SQL.Query(ctx, strings.ReplaceAll(`SELECT device_id, min(X), max(X), sum(X::double precision), count(X)
			FROM readings WHERE bucket_at >= $1 AND bucket_at < $2 AND X IS NOT NULL GROUP BY device_id`, "X", m.String()),
			hours.From, hours.To)
		require.NoError(t, err)
		var id uuid.UUID
		var s roomsensor.Stat
		_, err = pgx.ForEachRow(rows, []any{&id, &s.Min, &s.Max, &s.Sum, &s.Count}, func() error {
			of := want[id]
			of[m] = s
			want[id] = of
			return nil
		})
		require.NoError(t, err)
	}
	for i := range devices {
		require.Equal(t, want[devices[i].ID], devices[i].Last24h, message)
	}
}

// writtenDevice is the device whose readings the writers below change.
var writtenDevice = uuid.MustParse("11111111-0000-4000-8000-000000000001")

// sqlWriters change readings or a device as another program does, in ways that TestCurrentModel does not have.
var sqlWriters = map[string]string{
	"INSERT with REPEATABLE READ": `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
		INSERT INTO readings (device_id, bucket_at, lux) SELECT id, '2026-03-05 00:25:00Z', 7 FROM devices`,
	"INSERT without statistics": `SET LOCAL track_counts = off;
		INSERT INTO readings (device_id, bucket_at, lux) SELECT id, '2026-03-05 00:25:00Z', 7 FROM devices`,
	"COPY":               `COPY readings (device_id, bucket_at) FROM PROGRAM 'echo 11111111-0000-4000-8000-000000000001,2026-03-05 00:25:00Z' CSV`,
	"UPDATE of key":      `UPDATE readings SET bucket_at = bucket_at + interval '1 hour'`,
	"TRUNCATE":           `TRUNCATE readings`,
	"drop_chunks":        `SELECT drop_chunks('readings', older_than => timestamptz '2026-03-05 00:00:00Z')`,
	"drop_chunks of all": `SELECT drop_chunks('readings', older_than => timestamptz '2027-03-05 00:00:00Z')`,
	"a device that is created again": `DELETE FROM devices WHERE hardware_id = 'dev:2'; INSERT INTO devices (id, team_id, hardware_id)
		SELECT '11111111-0000-4000-8000-000000000001', id, 'dev:3' FROM teams`,
	"an assignment": `INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', '2026-03-05Z' FROM devices`,
}

// TestCurrentWriters checks for each of sqlWriters that the next snapshot shows what it changed.
func TestCurrentWriters(t *testing.T) {
	t.Parallel()
	setupWritten := func(t *testing.T) *fixture {
		t.Helper()
		f := setup(t)
		f.Exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:2')`, writtenDevice, f.TeamID)
		f.WriteRows(t, co2(writtenDevice, "2026-03-04T07:00:00Z", 500), co2(writtenDevice, "2026-03-05T00:12:00Z", 600),
			co2(writtenDevice, "2026-03-05T00:20:00Z", 700))
		f.requireCurrent(t.Context(), t, now, "before")
		return f
	}
	for name, sql := range sqlWriters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupWritten(t)
			f.Exec(t, sql)
			f.requireCurrent(t.Context(), t, now, "after")
			f.WriteRows(t, co2(f.DeviceID, "2026-03-05T00:25:00Z", 7))
			f.requireCurrent(t.Context(), t, now, "a worker writes after it")
		})
	}
}

// TestCurrentDeletions checks that the next snapshot shows that an operator deleted readings: the newest ones, old ones, or
// all of a device.
func TestCurrentDeletions(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]roomsensor.Window{
		"the newest":  {From: at("2026-03-05T00:10:00Z"), To: at("2026-03-06T00:00:00Z")},
		"a past hour": {From: at("2026-03-04T07:00:00Z"), To: at("2026-03-04T07:05:00Z")},
		"all":         {From: at("2026-03-01T00:00:00Z"), To: at("2026-03-06T00:00:00Z")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			other := f.NewDevice(t, "dev:2")
			for _, device := range []uuid.UUID{f.DeviceID, other} {
				f.WriteRows(t, co2(device, "2026-03-04T07:00:00Z", 500), co2(device, "2026-03-05T00:05:00Z", 600),
					co2(device, "2026-03-05T00:20:00Z", 700))
			}
			f.requireCurrent(t.Context(), t, now, "before")
			deleted, err := f.DeleteReadings(t.Context(), f.DeviceID, w, "x")
			require.NoError(t, err)
			require.Positive(t, deleted.Readings)
			f.requireCurrent(t.Context(), t, now, "after")
			f.WriteRows(t, co2(f.DeviceID, "2026-03-04T23:00:00Z", 7))
			f.requireCurrent(t.Context(), t, now, "a late reading comes after it")
			f.WriteRows(t, co2(f.DeviceID, "2026-03-05T00:10:00Z", 7))
			f.requireCurrent(t.Context(), t, now, "a reading of the hour comes after it")
		})
	}
}

// TestCurrentTeamReadsChanges checks which statistics are read again, with changes that no trigger sees.
func TestCurrentTeamReadsChanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := now
	add := func(measuredAt string, ppm float32) {
		t.Helper()
		f.WriteRows(t, co2(f.DeviceID, measuredAt, ppm))
	}
	hide := func(ppm float32) {
		t.Helper()
		f.Exec(t, fmt.Sprintf(`SET LOCAL session_replication_role = replica; UPDATE readings SET co2_ppm = %v`, ppm))
	}
	requireSum := func(message string, want float64) {
		t.Helper()
		require.InDelta(t, want, f.currentTeam(t.Context(), t, now)[0].Last24h[roomsensor.CO2].Sum, 0, message)
	}
	add("2026-03-04T02:05:00Z", 50) // The hour at 02:00 does not have it any more.
	add("2026-03-04T12:00:00Z", 100)
	add("2026-03-05T00:05:00Z", 200)
	requireSum("first", 350)
	hide(1)
	requireSum("nothing changed", 350)
	add("2026-03-05T00:10:00Z", 400)
	requireSum("the current hour is read, and the past hours are not", 150+1+400)
	hide(2)
	add("2026-03-05T00:00:00Z", 500)
	requireSum("a late reading of the current hour", 150+2+2+500)
	add("2026-03-04T12:05:00Z", 600)
	requireSum("a late reading of a past hour", 4*2+500+600)
	hide(3)
	now = at("2026-03-05T01:00:00Z")
	requireSum("another hour", 6*3)
	hide(4)
	add("2026-03-05T01:00:00Z", 700)
	requireSum("the newest reading was in a past hour", 6*4+700)
	hide(5)
	add("2026-03-05T01:05:00Z", 800)
	requireSum("now it was in the current hour", 6*4+5+800)
	hide(6)
	now = now.Add(late)
	requireSum("hours are read for the next one", 6*4+5+800)
	hide(7)
	now = at("2026-03-05T02:00:00Z")
	requireSum("in the next hour, the one that has ended is read", 5*6+2*7)
	hide(8)
	f.LimitStats(0)
	requireSum("nothing is known", 7*8)
	hide(9)
	requireSum("nothing is kept", 7*9)
}

// TestCurrentTeamSize checks that a team with more devices or tags than allowed is left to pages.
func TestCurrentTeamSize(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.NewDevice(t, "dev:2")
	for name, q := range map[string]roomsensor.DeviceQuery{"devices": {Limit: 1}, "tags": {Limit: 2, MaxTagBytes: 100}} {
		f.Exec(t, `UPDATE devices SET metadata = jsonb_build_object('long', repeat('x', 80))`)
		devices, err := f.CurrentTeam(t.Context(), f.TeamID, q, now)
		require.NoError(t, err, name)
		require.Nil(t, devices, name)
	}
	devices, err := f.CurrentTeam(t.Context(), f.TeamID, roomsensor.DeviceQuery{Limit: 2, MaxTagBytes: 200}, now)
	require.NoError(t, err)
	require.Len(t, devices, 2)
}

// TestCurrentTeamContinues checks that what was read before an error is not read again: the statistics of a large team
// may take longer than a request.
func TestCurrentTeamContinues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ids := []uuid.UUID{f.DeviceID, f.NewDevice(t, "dev:2")}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	s := open(t, (&dbtest.DB{URL: f.URL}).With("lock_timeout", "100ms"), store.Ingest)
	s.StatsDevices = 1
	now := now
	read := func() ([]roomsensor.CurrentDevice, error) {
		return s.CurrentTeam(t.Context(), f.TeamID, roomsensor.DeviceQuery{Limit: 2}, now)
	}
	f.WriteRows(t, co2(ids[0], "2026-03-05T00:05:00Z", 100))
	f.WriteRows(t, co2(ids[1], "2026-03-05T00:05:00Z", 100))
	_, err := read()
	require.NoError(t, err)
	f.WriteRows(t, co2(ids[0], "2026-03-05T00:10:00Z", 200))
	f.WriteRows(t, co2(ids[1], "2026-03-04T12:00:00Z", 200)) // In the chunk before, which is locked now.
	lock, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(context.Background()) }()
	_, err = lock.Exec(t.Context(), `DO $$ BEGIN EXECUTE 'LOCK TABLE ' || (SELECT show_chunks('readings', older_than => '2026-03-05Z'::timestamptz)); END $$`)
	require.NoError(t, err)
	_, err = read()
	requireCode(t, err, roomsensor.CodeOverloaded)
	require.NoError(t, lock.Rollback(t.Context()))
	f.Exec(t, `SET LOCAL session_replication_role = replica; UPDATE readings SET co2_ppm = 7`)
	devices, err := read()
	require.NoError(t, err)
	require.InDelta(t, 300, devices[0].Last24h[roomsensor.CO2].Sum, 0)
	require.InDelta(t, 2*7, devices[1].Last24h[roomsensor.CO2].Sum, 0)
}

// TestCurrentDevicesOldChunks checks that the newest reading of a silent device reads no chunk, because old chunks are
// many, and may be locked.
func TestCurrentDevicesOldChunks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.NewDevice(t, "dev:2") // Without readings.
	f.WriteRows(t, co2(f.DeviceID, "2018-05-01T00:00:00Z", 1))
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2020-05-01Z')`, f.DeviceID)
	lock, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(context.Background()) }()
	_, err = lock.Exec(t.Context(), `DO $$ DECLARE c regclass; BEGIN
		FOR c IN SELECT show_chunks('readings') LOOP EXECUTE 'LOCK TABLE ' || c; END LOOP; END $$`)
	require.NoError(t, err)
	devices := f.currentTeam(t.Context(), t, now)
	i := slices.IndexFunc(devices, func(d roomsensor.CurrentDevice) bool { return d.ID == f.DeviceID })
	require.Equal(t, at("2020-05-01T00:00:00Z"), devices[i].Latest.BucketAt)
}

// TestCurrentFromHourly checks that statistics are exact at once after late readings, and on the Community edition, with the
// refresh policy as it is by default, that past hours come from readings_hourly, up to the hour that ended last.
func TestCurrentFromHourly(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 e", "decision 17 i")
	f := setup(t)
	var hour time.Time
	require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT date_trunc('hour', now(), 'UTC')").Scan(&hour))
	write := func(before time.Duration, ppm float32) {
		t.Helper()
		f.WriteRows(t, co2(f.DeviceID, roomsensor.FormatTime(hour.Add(-before)), ppm))
	}
	requireSum := func(message string, want float64) {
		t.Helper()
		f.LimitStats(0)
		require.InDelta(t, want, f.currentTeam(t.Context(), t, hour)[0].Last24h[roomsensor.CO2].Sum, 0, message)
	}
	write(23*time.Hour, 1)
	write(3*time.Hour, 20)
	write(5*time.Minute, 300)
	write(0, 4000)
	requireSum("before the first refresh", 4321)
	stored := 1.0
	if dbtest.Edition(t) == postgres.Community {
		stored = 2
		job := f.Number(t, "SELECT job_id FROM timescaledb_information.jobs WHERE proc_name = 'policy_refresh_continuous_aggregate'")
		f.Exec(t, fmt.Sprintf("CALL run_job(%d)", job))
		f.Exec(t, `DO $$ BEGIN EXECUTE (SELECT format('UPDATE %I.%I SET co2_ppm_sum = co2_ppm_sum * 2',
			materialization_hypertable_schema, materialization_hypertable_name) FROM timescaledb_information.continuous_aggregates); END $$`)
	}
	requireSum("past hours are stored, and the current one is read", stored*321+4000)
	write(3*time.Hour-time.Minute*5, 50)
	requireSum("the hour of a late reading is read", stored*301+70+4000)
}

// TestCurrentModel checks that snapshots equal what is read of all devices, whatever is written between them: by workers,
// with SQL, and in transactions of other programs that overlap.
func TestCurrentModel(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 b", "decision 17 d", "decision 17 h")
	f := setup(t)
	copying := open(t, f.URL, store.Ingest)
	copying.MinCopyRows = 1
	rapid.Check(t, func(rt *rapid.T) {
		m := f.newCurrentModel(t)
		defer m.rollback()
		f.StatsDevices = rapid.SampledFrom([]int{1, 2, 1000}).Draw(rt, "devices at once")
		actions := m.actions(t, copying)
		names := slices.Sorted(maps.Keys(actions))
		requireCurrent := func(message string) {
			f.requireCurrent(t.Context(), rt, m.now, message)
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
	f.Exec(t, `TRUNCATE readings; DELETE FROM device_hardware; DELETE FROM assignments; DELETE FROM devices`)
	m := &currentModel{fixture: f, imported: f.NewDevice(t, "dev:4"), now: now}
	m.devices = []uuid.UUID{f.NewDevice(t, "dev:1"), f.NewDevice(t, "dev:2"), uuid.New()}
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at)
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

func (m *currentModel) actions(t *testing.T, copying *store.Store) map[string]func(*rapid.T) {
	t.Helper()
	const current, next, last, past, first, old = 0, 1, -1, -4, -23, -72
	anyHour := []int{current, current, current, next, last, past, first, old}
	actions := map[string]func(*rapid.T){
		"worker":      func(rt *rapid.T) { m.upsert(t, rt, m.Store, m.bucket(rt, anyHour...)) },
		"worker copy": func(rt *rapid.T) { m.upsert(t, rt, copying, m.bucket(rt, anyHour...)) },
		"hour":        func(*rapid.T) { m.now = m.now.Truncate(time.Hour).Add(time.Hour) },
		"late":        func(*rapid.T) { m.now = m.now.Truncate(time.Hour).Add(late) },
		"insert": func(rt *rapid.T) {
			m.Exec(t, `INSERT INTO readings (device_id, bucket_at, temp_c) VALUES ($1, $2, 20) ON CONFLICT DO NOTHING`,
				m.device(rt), m.bucket(rt, current, past, first, old))
		},
		"update": func(rt *rapid.T) {
			m.Exec(t, `UPDATE readings SET lux = coalesce(lux, 0) + 1 WHERE device_id = $1`, m.device(rt))
		},
		"move": func(rt *rapid.T) {
			m.Exec(t, `UPDATE readings r SET device_id = $1 WHERE device_id = $2
				AND NOT EXISTS (SELECT FROM readings o WHERE o.device_id = $1 AND o.bucket_at = r.bucket_at)`, m.device(rt), m.device(rt))
		},
		"delete": func(rt *rapid.T) {
			m.Exec(t, `DELETE FROM readings WHERE device_id = $1 AND bucket_at >= $2`, m.device(rt), m.bucket(rt, current, past))
		},
		"drop chunks": func(rt *rapid.T) {
			if len(m.open) > 0 {
				return // It would wait for them.
			}
			m.Exec(t, `SELECT drop_chunks('readings', older_than => $1::timestamptz)`, m.bucket(rt, current, old))
			// An import that creates the chunk would make the next one wait.
			m.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), '2026-03-04 23:55:00Z')`)
		},
		"import device": func(*rapid.T) {
			m.Exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:3') ON CONFLICT DO NOTHING`,
				m.devices[2], m.TeamID)
		},
		"delete device": func(*rapid.T) {
			m.Exec(t, `DELETE FROM assignments WHERE device_id = $1`, m.devices[2])
			m.Exec(t, `DELETE FROM devices WHERE id = $1`, m.devices[2])
		},
		"change device": func(rt *rapid.T) {
			m.Exec(t, `UPDATE devices SET metadata = jsonb_build_object('floor', $2::text) WHERE id = $1`, m.device(rt),
				rapid.StringMatching(`[a-c]`).Draw(rt, "floor"))
		},
		"restart":      func(*rapid.T) { m.LimitStats(1 << 20) },
		"begin import": func(*rapid.T) { m.beginImport(t) },
		"end import":   func(rt *rapid.T) { m.endImport(t, rt) },
	}
	if dbtest.Edition(t) == postgres.Community {
		actions["store hours"] = func(rt *rapid.T) {
			until := m.now.Truncate(time.Hour).Add(time.Duration(rapid.SampledFrom([]int{current, past, first}).Draw(rt, "until")) * time.Hour)
			m.Exec(t, fmt.Sprintf("CALL refresh_continuous_aggregate('readings_hourly', NULL, '%s'::timestamptz)",
				roomsensor.FormatTime(until)))
		}
	}
	return actions
}

// drawValue draws a number as sensors send it, an extreme one, or none. Sums of them are exact in 64 bits, so that their
// order cannot matter.
func drawValue(t *rapid.T, name string) (x float32, ok bool) {
	switch rapid.IntRange(0, 9).Draw(t, name) {
	case 0, 1:
		return 0, false
	case 2:
		return rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 100_000, -90, 0.1}).Draw(t, name), true
	case 3:
		return float32(rapid.IntRange(-90<<10, 100_000<<10).Draw(t, name)) / (1 << 10), true
	}
	return float32(rapid.IntRange(-900, 20_000).Draw(t, name)) / 10, true
}

// upsert stores a reading as a worker does. Of a device that does not exist, nothing is stored.
func (m *currentModel) upsert(t *testing.T, rt *rapid.T, s *store.Store, bucket time.Time) {
	t.Helper()
	row := roomsensor.DeviceMeasurement{DeviceID: m.device(rt)}
	row.MeasuredAt = bucket.Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "second")) * time.Second)
	for _, metric := range roomsensor.Metrics {
		if x, ok := drawValue(rt, metric.String()); ok {
			row.Values.Set(metric, x)
		}
	}
	if _, err := s.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{row}}); err != nil {
		requireCode(t, err, roomsensor.CodeOverloaded)
	}
}

func (m *currentModel) beginImport(t *testing.T) {
	t.Helper()
	if len(m.open) == 3 {
		return
	}
	tx, err := m.SQL.BeginTx(t.Context(), pgx.TxOptions{})
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
