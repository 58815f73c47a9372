package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience is longer than a busy machine takes for anything.
const patience = 2 * time.Minute

// fixture is a new database with one team and one device, and a store of the role API.
type fixture struct {
	*store.Store
	sql    *pgxpool.Pool // for what only SQL can say
	url    string
	team   uuid.UUID
	device uuid.UUID
}

func setup(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{url: dbtest.New(t).URL}
	f.Store = open(t, f.url, store.API)
	var err error
	f.sql, err = pgxpool.New(t.Context(), f.url)
	require.NoError(t, err)
	t.Cleanup(f.sql.Close)
	team, err := f.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	f.team = team.ID
	f.device = f.newDevice(t, "dev:1")
	return f
}

// open opens a store. Its pages do not end early, as those of a slow database do, unless the test sets that.
func open(t testing.TB, url string, role store.Role) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, role)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	if _, measures := t.(*testing.B); !measures {
		s.SetPageTime(patience)
	}
	return s
}

func (f *fixture) newDevice(t testing.TB, hardwareID string) uuid.UUID {
	t.Helper()
	d, err := f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: hardwareID}, time.Now())
	require.NoError(t, err)
	return d.ID
}

// insertDevice inserts a device with SQL, without an installation, and returns its id.
func (f *fixture) insertDevice(t *testing.T) uuid.UUID {
	t.Helper()
	id := uuid.New()
	f.exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:9')", id, f.team)
	return id
}

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := f.sql.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// write stores rows in one batch and returns how many changed.
func (f *fixture) write(t *testing.T, rows ...roomsensor.DeviceMeasurement) int64 {
	t.Helper()
	changed, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
	require.NoError(t, err)
	return changed
}

// readAll reads every reading of a device, newest first.
func (f *fixture) readAll(t *testing.T, device uuid.UUID) []roomsensor.Reading {
	t.Helper()
	return f.readings(t, f.team, device, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: roomsensor.MeasuredFrom, To: roomsensor.Forever}, Limit: 100_000,
	})
}

// readings reads a page of readings.
func (f *fixture) readings(
	t *testing.T, team, device uuid.UUID, q roomsensor.ReadingQuery,
) (page []roomsensor.Reading) {
	t.Helper()
	err := f.EachReading(t.Context(), team, device, q, func(r *roomsensor.Reading) { page = append(page, *r) })
	require.NoError(t, err)
	return page
}

func valueOf(r roomsensor.Reading, m roomsensor.Metric) (float32, bool) { return r.Values.Get(m) }

func at(text string) time.Time {
	parsed, ok := roomsensor.ParseTime(text)
	if !ok {
		panic("not a time: " + text)
	}
	return parsed
}

// co2 returns a measurement of one metric.
func co2(device uuid.UUID, measuredAt string, ppm float32) roomsensor.DeviceMeasurement {
	m := roomsensor.DeviceMeasurement{DeviceID: device}
	m.MeasuredAt = at(measuredAt)
	m.Values.Set(roomsensor.CO2, ppm)
	return m
}

func requireCode(t require.TestingT, err error, code roomsensor.Code) {
	var answer *roomsensor.Error
	require.ErrorAs(t, err, &answer)
	require.Equal(t, code, answer.Code)
}

// TestErrors checks which errors a caller sees when the database is unavailable or the context ends.
func TestErrors(t *testing.T) {
	t.Parallel()
	t.Run("an unavailable database is overloaded", func(t *testing.T) {
		t.Parallel()
		s := open(t, "postgres://nobody@127.0.0.1:1/none", store.API)
		_, err := s.Team(t.Context(), uuid.New())
		requireCode(t, err, roomsensor.CodeOverloaded)
		require.Error(t, s.Ping(t.Context()))
	})
	t.Run("an expired deadline is overloaded", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		_, err := f.Team(ctx, f.team)
		requireCode(t, err, roomsensor.CodeOverloaded)
	})
	t.Run("a canceled request stays canceled", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Team(ctx, f.team)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAdmission checks that requests are admitted, and that the database counts as available, while every connection
// for pages is in use.
func TestAdmission(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.HoldConnections(t)
	require.NoError(t, f.Ping(t.Context()))
	_, err := f.APIKeysByID(t.Context(), []string{"unknown"})
	require.NoError(t, err)
	verdict, err := f.CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.True(t, verdict.Allowed)
}

// TestIngestKeysChanged checks that a receiver sees every change once it is committed, also if the transaction began
// before the last query of the receiver, or has an earlier time.
func TestIngestKeysChanged(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const insert = `INSERT INTO ingest_keys (key_id, team_id, secret_sha256, created_at) VALUES ($1, $2, sha256(''), '2001-01-01')`
	late, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = late.Exec(t.Context(), insert, "late", f.team)
	require.NoError(t, err)
	f.exec(t, insert, "early", f.team)
	f.exec(t, insert, "unchanged", f.team)

	position := func() roomsensor.KeyPosition {
		p, err := f.IngestKeyPosition(t.Context())
		require.NoError(t, err)
		return p
	}
	changed := func(since roomsensor.KeyPosition) (ids []string) {
		keys, err := f.IngestKeysChanged(t.Context(), since, 10)
		require.NoError(t, err)
		for i := range keys {
			ids = append(ids, keys[i].ID)
		}
		return ids
	}
	before := position()
	require.NotContains(t, changed(before), "late")
	require.NoError(t, late.Commit(t.Context()))
	require.Contains(t, changed(before), "late")

	// A position is the oldest transaction on the server, which may be one of another database.
	oldest := func() (transaction int64) {
		require.NoError(t, f.sql.QueryRow(t.Context(), "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&transaction))
		return transaction
	}
	first, middle, last := oldest(), position(), oldest()
	require.LessOrEqual(t, first, middle.OldestRunning)
	require.LessOrEqual(t, middle.OldestRunning, last)

	// setChangedIn sets the transactions of all keys. The test does not wait until their real ones are before a position,
	// because a transaction of another test may run for long.
	setChangedIn := func(transaction int64) {
		f.exec(t, "ALTER TABLE ingest_keys DISABLE TRIGGER ingest_key_changed")
		f.exec(t, "UPDATE ingest_keys SET changed_in = $1", transaction)
		f.exec(t, "ALTER TABLE ingest_keys ENABLE TRIGGER ingest_key_changed")
	}
	setChangedIn(middle.OldestRunning - 1)
	require.Empty(t, changed(middle))
	_, err = f.RevokeIngestKey(t.Context(), f.team, "early")
	require.NoError(t, err)
	require.Equal(t, []string{"early"}, changed(middle))

	setChangedIn(1_000_000_000_000) // The table was restored from a server with more transactions.
	require.Empty(t, changed(middle))
	_, err = f.RevokeIngestKey(t.Context(), f.team, "unchanged")
	require.NoError(t, err)
	require.Equal(t, []string{"unchanged"}, changed(middle))
}

// TestCursorSecret checks that all replicas get the same secret.
func TestCursorSecret(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first, err := f.CursorSecret(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 32)
	other, err := open(t, f.url, store.API).CursorSecret(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, other)
}

func TestDatabaseNeededLocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ maxLocks, chunks, want int }{
		{64, 0, 0}, {64, 32, 0}, {64, 33, 256}, {256, 128, 0}, {256, 129, 512}, {256, 621, 2048},
	} {
		require.Equal(t, test.want, store.Database{MaxLocks: test.maxLocks, Chunks: test.chunks}.NeededLocks(), test)
	}

	f := setup(t)
	before, err := f.Database(t.Context())
	require.NoError(t, err)
	require.Positive(t, before.MaxLocks)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2020-01-01')`, f.device)
	after, err := f.Database(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Chunks+1, after.Chunks)
}
