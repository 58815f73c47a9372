// Package storetest has the fixture of the tests of the packages of the store: a new database with one team and one
// device, and a store of the role API.
package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
)

// Patience is longer than a busy machine takes for anything.
const Patience = 2 * time.Minute

// From is the bucket of the first reading that Fill inserts.
var From = At("2026-01-01T00:00:00Z")

// Fixture is a new database with one team and one device, and a store of the role API.
type Fixture struct {
	*store.Store
	SQL      *pgxpool.Pool // for what only SQL can say
	URL      string
	TeamID   uuid.UUID
	DeviceID uuid.UUID
}

// New creates the database of a test.
func New(t testing.TB) *Fixture {
	t.Helper()
	f := Connect(t, dbtest.New(t).URL)
	f.DeviceID = f.NewDevice(t, "dev:1")
	return f
}

// Connect opens a store on a database and creates a team.
func Connect(t testing.TB, url string) *Fixture {
	t.Helper()
	f := &Fixture{Store: Open(t, url, store.API), URL: url}
	var err error
	f.SQL, err = pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(f.SQL.Close)
	team, err := f.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	f.TeamID = team.ID
	return f
}

// Open opens a store, which the end of the test closes. Its pages do not end early, as those of a slow database do,
// unless the test sets that.
func Open(t testing.TB, url string, role store.Role) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, role)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	if _, measures := t.(*testing.B); !measures {
		s.Feed.Limits.Time = Patience
		s.Readings.Limits.CoverageTime, s.Readings.Limits.AggregateTime = Patience, Patience
	}
	return s
}

// NewDevice creates a device of the team with a unit, and returns its id.
func (f *Fixture) NewDevice(t testing.TB, hardwareID string) uuid.UUID {
	t.Helper()
	d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.TeamID, HardwareID: hardwareID}, time.Now())
	require.NoError(t, err)
	return d.ID
}

// InsertDevice inserts a device with SQL, without an installation, and returns its id.
func (f *Fixture) InsertDevice(t testing.TB) uuid.UUID {
	t.Helper()
	id := uuid.New()
	f.Exec(t, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, 'dev:9')", id, f.TeamID)
	return id
}

// NewAPIKey creates an API key of the team that may write, and returns its id.
func (f *Fixture) NewAPIKey(t testing.TB) string {
	t.Helper()
	key := roomsensor.Key{TeamID: f.TeamID, Scope: roomsensor.ScopeReadWrite}
	key.ID, _, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	_, err := f.CreateAPIKey(t.Context(), key)
	require.NoError(t, err)
	return key.ID
}

// Rename returns a patch of the display name.
func Rename(name string) roomsensor.DevicePatch {
	return roomsensor.DevicePatch{SetDisplayName: true, DisplayName: &name}
}

// Exec executes a statement.
func (f *Fixture) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := f.SQL.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// Number returns the number that a query selects.
func (f *Fixture) Number(t testing.TB, sql string) (n int) {
	t.Helper()
	require.NoError(t, f.SQL.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

// Fill inserts a reading into each of some buckets of devices, from the bucket From on.
func (f *Fixture) Fill(t testing.TB, buckets int, devices ...uuid.UUID) {
	t.Helper()
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d, $2::timestamptz + n * interval '5 minutes', n
		FROM unnest($1::uuid[]) d, generate_series(0, $3 - 1) n`, devices, From, buckets)
}

// WriteRows stores rows in one batch and returns how many changed.
func (f *Fixture) WriteRows(t testing.TB, rows ...roomsensor.DeviceMeasurement) int64 {
	t.Helper()
	changed, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
	require.NoError(t, err)
	return changed
}

// ReadAll reads every reading of a device, newest first.
func (f *Fixture) ReadAll(t testing.TB, device uuid.UUID) []roomsensor.Reading {
	t.Helper()
	return f.ReadPage(t, f.TeamID, device, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: roomsensor.MeasuredFrom, To: roomsensor.Forever}, Limit: 100_000,
	})
}

// ReadPage reads a page of readings.
func (f *Fixture) ReadPage(
	t testing.TB, team, device uuid.UUID, q roomsensor.ReadingQuery,
) (page []roomsensor.Reading) {
	t.Helper()
	err := f.EachReading(t.Context(), team, device, q, func(r *roomsensor.Reading) { page = append(page, *r) })
	require.NoError(t, err)
	return page
}

// Days returns the window of the first days from From on.
func Days(n int) roomsensor.Window {
	return roomsensor.Window{From: From, To: From.AddDate(0, 0, n)}
}

// At parses a time of RFC 3339.
func At(text string) time.Time {
	parsed, ok := roomsensor.ParseTime(text)
	if !ok {
		panic("not a time: " + text)
	}
	return parsed
}

// CO2 returns a measurement of one metric.
func CO2(device uuid.UUID, measuredAt string, ppm float32) roomsensor.DeviceMeasurement {
	m := roomsensor.DeviceMeasurement{DeviceID: device}
	m.MeasuredAt = At(measuredAt)
	m.Values.Set(roomsensor.CO2, ppm)
	return m
}

// Sequence returns n rows of one new device: enough of them make a batch that is copied.
func (f *Fixture) Sequence(t testing.TB, n int) []roomsensor.DeviceMeasurement {
	t.Helper()
	id := f.InsertDevice(t)
	rows := make([]roomsensor.DeviceMeasurement, n)
	for i := range rows {
		rows[i].DeviceID = id
		rows[i].MeasuredAt = From.Add(time.Duration(i) * roomsensor.BucketLength)
	}
	return rows
}

// RequireCode requires an error of the API with a code.
func RequireCode(t require.TestingT, err error, code roomsensor.Code) {
	var answer *roomsensor.Error
	require.ErrorAs(t, err, &answer)
	require.Equal(t, code, answer.Code)
}
