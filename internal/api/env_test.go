package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
	"roomsensor/test/secretscan"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience limits every wait of a test.
const patience = proctest.Patience

// start is the first time of a fixture's clock.
var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// The ids and paths of a fixture's team and first device.
var (
	teamID          = uuid.MustParse("7ea00000-0000-4000-8000-000000000001")
	deviceID        = uuid.MustParse("de000000-0000-4000-8000-000000000001")
	devicePath      = "/devices/" + deviceID.String()
	readingsPath    = devicePath + "/readings"
	assignmentsPath = devicePath + "/assignments"
	gapsPath        = devicePath + "/gaps"
	aggregatesPath  = devicePath + "/aggregates"
)

const docsURL = "https://docs.example/docs"

// fixture is the API over its own database, which holds one team, one device and a key of each scope.
type fixture struct {
	*replica
	url     string // of the database
	store   *store.Store
	sql     *pgxpool.Pool // for what the store cannot write
	clock   *clock
	readKey string
	key     string // of scope read_write
}

func setup(t testing.TB) *fixture {
	t.Helper()
	return setupOn(t, dbtest.New(t))
}

func setupOn(t testing.TB, database *dbtest.DB) *fixture {
	t.Helper()
	f := &fixture{url: database.URL, clock: &clock{at: start}}
	f.store = openStore(t, database.URL)
	var err error
	f.sql, err = pgxpool.New(t.Context(), database.URL)
	require.NoError(t, err)
	t.Cleanup(f.sql.Close)
	f.addTeam(t, teamID)
	f.addDevice(t, teamID, deviceID, "dev:1")
	f.readKey = f.newKey(t, roomsensor.ScopeRead)
	f.key = f.newKey(t, roomsensor.ScopeReadWrite)
	f.replica = f.serve(t, f.store, nil)
	return f
}

func openStore(t testing.TB, url string) *store.Store {
	t.Helper()
	// A slow machine may take longer than the timeout of the API.
	patient := (&dbtest.DB{URL: url}).With("statement_timeout", strconv.FormatInt(patience.Milliseconds(), 10))
	s, err := store.Open(t.Context(), patient, store.API)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// databaseClock replaces the clock of the database: the functions that the service's SQL calls for the time are found
// in a schema that precedes the system's in the search path.
const databaseClock = `
	CREATE SCHEMA test_clock;
	CREATE TABLE test_clock.clock (at timestamptz NOT NULL);
	CREATE FUNCTION test_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock.clock';
	CREATE FUNCTION test_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM test_clock.clock';
	ALTER TABLE idempotency_keys ALTER created_at SET DEFAULT test_clock.now();
	DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET search_path = test_clock, pg_catalog, public', current_database());
	END $$`

// setupWithDatabaseClock is setup with a database that has the clock of the fixture.
func setupWithDatabaseClock(t *testing.T) *fixture {
	t.Helper()
	database := dbtest.New(t)
	conn, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), databaseClock)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO test_clock.clock VALUES ($1)", start)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	return setupOn(t, database)
}

// advanceBoth moves the clocks of the API and of the database.
func (f *fixture) advanceBoth(t *testing.T, d time.Duration) {
	t.Helper()
	f.clock.advance(d)
	f.exec(t, `UPDATE test_clock.clock SET at = $1`, f.clock.now())
}

// serve starts another replica of the API. It logs at level debug, and no log may hold the secret of a key (decision
// 26).
func (f *fixture) serve(t testing.TB, b api.Backend, configure func(*api.Config), tune ...func(*http.Server)) *replica {
	t.Helper()
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	r := &replica{log: &proctest.Output{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.failures())
		}
		require.Empty(t, secretscan.Keys([]byte(r.log.String())), "secrets in the log")
	})
	logger := zerolog.New(r.log).Level(zerolog.DebugLevel)
	cfg := api.Config{
		Site: httpedge.Site{DocsURL: docsURL}, CursorSecret: secret, Docs: docsStub, Now: f.clock.now, Log: logger,
		SnapshotAge: -1, // A test reads at once what it stored.
		Timeout:     patience,
	}
	if configure != nil {
		configure(&cfg)
	}
	handler, err := api.New(cfg, b)
	require.NoError(t, err)
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = api.NewServer(handler, logger)
	for _, change := range tune {
		change(r.server.Config)
	}
	r.server.Listener = httpedge.IdleListener(r.server.Listener)
	r.server.Start()
	t.Cleanup(r.server.Close)
	r.server.Client().Transport.(*http.Transport).DisableCompression = true
	r.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r
}

// failures returns the warnings and errors in the log.
func (r *replica) failures() string {
	var found strings.Builder
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"warn"`) {
			found.WriteString(line)
		}
	}
	return found.String()
}

// serveFailing starts a replica of which GET /team fails with an error.
func (f *fixture) serveFailing(t testing.TB, fail func(context.Context) error) *replica {
	t.Helper()
	return f.serve(t, &failingTeam{f.store, fail}, nil)
}

// failingTeam is the store, but GET /team returns the result of fail.
type failingTeam struct {
	api.Backend
	fail func(ctx context.Context) error
}

func (b *failingTeam) Team(ctx context.Context, _ uuid.UUID) (roomsensor.Team, error) {
	return roomsensor.Team{}, b.fail(ctx)
}

var errDatabaseLost = errors.New("terminating connection due to administrator command at 10.1.2.3")

func databaseLost(context.Context) error { return errDatabaseLost }

var docsStub = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/docs" {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "the docs")
})

// replica is a running API.
type replica struct {
	server *httptest.Server
	log    *proctest.Output
}

// clock is the API's clock, which only tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (f *fixture) exec(t testingT, sql string, args ...any) {
	t.Helper()
	_, err := f.sql.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (f *fixture) addTeam(t testing.TB, id uuid.UUID) {
	t.Helper()
	f.exec(t, `INSERT INTO teams (id, name) VALUES ($1, 'Team <&>')`, id)
}

func (f *fixture) addDevice(t testing.TB, team, id uuid.UUID, hardwareID string) {
	t.Helper()
	f.exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, $3)`, id, team, hardwareID)
}

func (f *fixture) nameDevice(t testing.TB, id uuid.UUID, name string) {
	t.Helper()
	f.exec(t, `UPDATE devices SET display_name = $2 WHERE id = $1`, id, name)
}

// addKey creates a key and returns its text.
func (f *fixture) addKey(t testing.TB, key roomsensor.Key) string {
	t.Helper()
	var text string
	key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	_, err := f.store.CreateAPIKey(t.Context(), key)
	require.NoError(t, err)
	return text
}

// newKey creates a key of the fixture's team.
func (f *fixture) newKey(t testing.TB, scope roomsensor.Scope) string {
	t.Helper()
	return f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: scope})
}

// expiredKey creates a key that expired a second before start.
func (f *fixture) expiredKey(t testing.TB) string {
	t.Helper()
	past := start.Add(-time.Second)
	return f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &past})
}

// revoke revokes a key, given as text.
func (f *fixture) revoke(t testing.TB, key string) {
	t.Helper()
	_, err := f.store.RevokeAPIKey(t.Context(), teamID, keyID(key))
	require.NoError(t, err)
}

// revokedKey creates a key that is revoked before its first request.
func (f *fixture) revokedKey(t testing.TB) string {
	t.Helper()
	key := f.newKey(t, roomsensor.ScopeRead)
	f.revoke(t, key)
	return key
}

// limitedKey creates a key that may send no more requests for ten minutes.
func (f *fixture) limitedKey(t testing.TB, scope roomsensor.Scope) string {
	t.Helper()
	key := f.newKey(t, scope)
	f.fillWindow(t, key, slices.Repeat([]time.Time{time.Now()}, roomsensor.RateLimit))
	return key
}

// keyID returns the public part of a key.
func keyID(key string) string {
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, key)
	return id
}

// wrongSecret returns a key of the same id with another secret.
func wrongSecret(key string) string {
	return roomsensor.FormatKey(roomsensor.APIKey, keyID(key), "wrong")
}

// fillWindow makes the given instants, in ascending order, the counted requests of a key.
func (f *fixture) fillWindow(t testingT, key string, hits []time.Time) {
	t.Helper()
	f.exec(t, `INSERT INTO rate_windows (key_id, slot, hit_at) SELECT $1, n - 1, at FROM unnest($2::timestamptz[]) WITH ORDINALITY h (at, n)
		ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at`, keyID(key), hits)
	f.exec(t, `INSERT INTO rate_counters (key_id, passed, over) VALUES ($1, $2, 0)
		ON CONFLICT (key_id) DO UPDATE SET passed = excluded.passed, over = 0`, keyID(key), len(hits))
}

// resetRateLimits forgets the requests of all keys, so that a test can send more than 600.
func (f *fixture) resetRateLimits(t testingT) {
	t.Helper()
	f.exec(t, "DELETE FROM rate_counters")
}

// addReading stores a reading with SQL, so that its ingested_at is known.
func (f *fixture) addReading(t testing.TB, device uuid.UUID, at time.Time, co2 float32) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at) VALUES ($1, $2, $3, $4)`, device, at, co2, start)
}

// addReadings stores n readings in consecutive buckets; co2_ppm counts from 0.
func (f *fixture) addReadings(t testing.TB, device uuid.UUID, from time.Time, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at)
		SELECT $1, $2::timestamptz + i * INTERVAL '5 minutes', i, $3 FROM generate_series(0, $4 - 1) i`, device, from, start, n)
}

// addHourlyReadings stores n readings, the i-th i hours before start with i as co2_ppm.
func (f *fixture) addHourlyReadings(t testing.TB, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at)
		SELECT $1, $2::timestamptz - i * INTERVAL '1 hour', i, $2 FROM generate_series(0, $3 - 1) i`, deviceID, start, n)
}

// addAssignment adds an assignment; a nil end leaves it open.
func (f *fixture) addAssignment(t testing.TB, device, id uuid.UUID, from time.Time, end *time.Time) {
	t.Helper()
	f.exec(t, `INSERT INTO assignments (id, device_id, type, label, home_or_travel, started_at, ended_at)
		VALUES ($1, $2, 'place', 'Room 12', 'travel', $3, $4)`, id, device, from, end)
}

// addDevices gives the fixture's team devices with hardware ids up to dev:n.
func (f *fixture) addDevices(t testing.TB, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, $2::int) i`, teamID, n)
}

// fillDevice gives the fixture's device a value in every field and an open and a closed assignment, and adds device
// testID(0xde, 2), which has only the required fields.
func (f *fixture) fillDevice(t *testing.T) {
	t.Helper()
	f.exec(t, `UPDATE devices SET display_name = 'Gym <"A"> é', metadata = '{"room":"12","floor":"1","a.b:c-d_e":""}'
		WHERE id = $1`, deviceID)
	f.exec(t, `UPDATE device_state SET firmware_version = '2.4.1', last_seen_at = '2026-11-20 09:59:59.25Z', rssi_dbm = -87,
		signal_bars = 0 WHERE device_id = $1`, deviceID)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-3*time.Hour), new(start.Add(-2*time.Hour)))
	f.addAssignment(t, deviceID, testID(0xa5, 2), start.Add(-time.Hour), nil)
	f.exec(t, `UPDATE assignments SET type = 'athlete', label = 'Ana', external_ref = 'crm-7', home_or_travel = 'home' WHERE id = $1`,
		testID(0xa5, 2))
	f.addDevice(t, teamID, testID(0xde, 2), "dev:2")
}

// testID returns the id that begins with prefix and ends in n.
func testID(prefix byte, n int) uuid.UUID {
	id := uuid.MustParse("00000000-0000-4000-8000-000000000000")
	id[0], id[14], id[15] = prefix, byte(n>>8), byte(n)
	return id
}

// unknownID is the id of nothing.
var unknownID = testID(9, 9).String()

// before prints the instant d before start.
func before(d time.Duration) string { return roomsensor.FormatTime(start.Add(-d)) }
