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
	d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.team, HardwareID: hardwareID}, time.Now())
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
