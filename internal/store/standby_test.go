package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/completeness"
	"roomsensor/internal/store"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

// Slices in these tests are smaller than those of the service, so that less data is needed for several of them.
const (
	sliceRows   = 2_500
	fullBuckets = 1_000
)

// place is the key of a reading.
type place struct {
	device uuid.UUID
	bucket time.Time
}

// standbyTest is a database on a server of its own, with one team and three devices.
type standbyTest struct {
	*storetest.Fixture
	primary *dbtest.Primary
	devices []uuid.UUID // ascending
}

// TestStandby uses one primary for all subtests, and each uses stores of the role of the API, which may not do more on a
// standby than on the primary.
func TestStandby(t *testing.T) {
	t.Parallel()
	s := newStandbyTest(t)
	follower := &server{s.primary.NewStandby("max_standby_streaming_delay = 0", "hot_standby_feedback = off")}
	t.Run("every read has the answer of the primary", func(t *testing.T) { s.testReads(t, follower) })
	t.Run("a count reads no rows", func(t *testing.T) { s.testCount(t, follower) })
	t.Run("a read has what was committed before it", func(t *testing.T) { s.testFreshness(t, follower) })
	t.Run("a standby that lags", func(t *testing.T) { s.testLag(t, follower) })
	t.Run("a conflict with recovery", func(t *testing.T) { s.testConflict(t, follower) })
	t.Run("a standby that does not answer", func(t *testing.T) { s.testHang(t, follower) })
	t.Run("a crash during an export", func(t *testing.T) { s.testCrash(t, follower) })
	t.Run("a promotion", func(t *testing.T) { s.testPromotion(t, follower) })
}

// server is a standby, or one that was promoted.
type server struct{ *dbtest.Standby }

// exec executes statements of a superuser.
func (s *server) exec(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// awaitSender waits until the server receives the log from another one.
func (s *server) awaitSender(t *testing.T, from *server) {
	t.Helper()
	config, err := pgx.ParseConfig(from.URL)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), s.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.Eventually(t, func() bool {
		var found bool
		err := conn.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE sender_port = $1 AND status = 'streaming')",
			config.Port).Scan(&found)
		return err == nil && found
	}, patience, 10*time.Millisecond)
}

// awaitReplay waits until the server has replayed what the primary has written, also what no commit has flushed.
func (s *server) awaitReplay(t *testing.T, primary *pgxpool.Pool) {
	t.Helper()
	var written int64
	err := primary.QueryRow(t.Context(), "SELECT (pg_switch_wal() - '0/0')::bigint").Scan(&written)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), s.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.Eventually(t, func() bool {
		var replayed int64
		err := conn.QueryRow(t.Context(), "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint").Scan(&replayed)
		return err == nil && replayed >= written
	}, patience, 10*time.Millisecond)
}

func newStandbyTest(t *testing.T) *standbyTest {
	t.Helper()
	s := &standbyTest{primary: dbtest.NewPrimary(t)}
	s.Fixture = storetest.Connect(t, s.primary.URL)
	for i := range 3 {
		s.devices = append(s.devices, s.NewDevice(t, fmt.Sprint("dev:", 1+i)))
	}
	slices.SortFunc(s.devices, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	s.DeviceID = s.devices[0]
	s.Exec(t, "UPDATE device_hardware SET installed_at = $1", exportFrom)
	s.Fill(t, fullBuckets, s.devices...)
	return s
}

// reading returns a store that reads from a standby, which is used.
func (s *standbyTest) reading(t *testing.T, standbyURL string) *store.Store {
	t.Helper()
	api := open(t, s.primary.As(t, schema.RoleAPI), store.API)
	api.SetStandbyTimes(patience, patience)
	api.Readings.Limits.SliceRows = sliceRows
	require.NoError(t, api.ReadFrom(t.Context(), standbyURL))
	requireUsed(t, api)
	return api
}

func requireUsed(t *testing.T, s *store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		results, err := s.CheckStandbys(t.Context())
		require.NoError(t, err)
		return results[0] == nil
	}, patience, 50*time.Millisecond)
}

// admit counts a request, and returns the context of its reads.
func admit(t testing.TB, s *store.Store) context.Context {
	t.Helper()
	verdict, err := s.CountRequest(t.Context(), uuid.NewString())
	require.NoError(t, err)
	require.NotZero(t, verdict.Position)
	return roomsensor.WithPosition(t.Context(), verdict.Position)
}

// allReads returns the answers of all reads that a standby may serve.
func (s *standbyTest) allReads(ctx context.Context, t *testing.T, api *store.Store) map[string]any {
	t.Helper()
	window, now := days(4), exportFrom.AddDate(0, 0, 4)
	all := map[string]any{}
	var readings []roomsensor.Reading
	require.NoError(t, api.EachReading(ctx, s.TeamID, s.DeviceID, roomsensor.ReadingQuery{Window: window, Limit: 1000},
		func(r *roomsensor.Reading) { readings = append(readings, *r) }))
	all["readings"] = readings
	calendar := aggregate.NewCalendar(aggregate.Hourly, time.UTC)
	buckets := slices.Collect(calendar.Buckets(window))
	slices.Reverse(buckets)
	aggregates, err := api.DeviceAggregates(ctx, s.TeamID, s.DeviceID,
		aggregate.Query{Window: window, Buckets: buckets, Now: now})
	require.NoError(t, err)
	all["aggregates"] = aggregates
	lines, err := api.OpenAggregates(ctx, s.TeamID, aggregate.ExportQuery{
		Window: window, Devices: s.devices, Calendar: calendar, Metrics: roomsensor.Metrics[:], Now: now,
	})
	require.NoError(t, err)
	var rows []aggregate.Row
	require.NoError(t, lines.Each(ctx, func(r *aggregate.Row) error { rows = append(rows, *r); return nil }))
	all["export of aggregates"] = rows
	var coverage []completeness.DeviceCoverage
	_, err = api.EachCoverage(ctx, s.TeamID, completeness.CoverageQuery{
		DeviceQuery: roomsensor.DeviceQuery{Limit: 1000}, Window: window, Now: now,
	},
		func(c *completeness.DeviceCoverage) bool { coverage = append(coverage, *c); return true })
	require.NoError(t, err)
	all["coverage"] = coverage
	var gaps []roomsensor.Window
	_, err = api.EachGap(ctx, s.TeamID, s.DeviceID, completeness.GapQuery{Window: window, Now: now},
		func(gap *roomsensor.Window) bool { gaps = append(gaps, *gap); return true })
	require.NoError(t, err)
	all["gaps"] = gaps
	for _, wide := range []bool{false, true} {
		all[fmt.Sprint("export, wide ", wide)] = s.export(ctx, t, api, wide)
	}
	return all
}

// export returns the rows of an export.
func (s *standbyTest) export(
	ctx context.Context, t *testing.T, api *store.Store, wide bool,
) (rows []roomsensor.ExportRow) {
	t.Helper()
	e, err := api.OpenExport(ctx, s.TeamID, roomsensor.ExportQuery{Window: days(4), Devices: s.devices, Lines: wide})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, e.Each(ctx, func(r *roomsensor.ExportRow) error { rows = append(rows, *r); return nil }))
	require.Len(t, rows, e.Rows())
	return rows
}

// changes returns all changes of the feed, at a new watermark.
func (s *standbyTest) changes(t *testing.T, api *store.Store) map[place]roomsensor.Reading {
	t.Helper()
	mark, err := api.FeedWatermark(t.Context())
	require.NoError(t, err)
	all := map[place]roomsensor.Reading{}
	progress, err := api.EachChange(roomsensor.WithPosition(t.Context(), mark.Position), s.TeamID,
		roomsensor.FeedQuery{Round: roomsensor.FeedRound{From: exportFrom, To: mark.At}, Most: 100_000},
		func(c *roomsensor.Change) bool { all[place{c.DeviceID, c.BucketAt}] = c.Reading; return true })
	require.NoError(t, err)
	require.True(t, progress.Done)
	return all
}

func (s *standbyTest) testReads(t *testing.T, follower *server) {
	t.Helper()
	api := s.reading(t, follower.As(t, schema.RoleAPI))
	require.Equal(t, s.changes(t, s.Store), s.changes(t, api))
	require.Equal(t, s.allReads(t.Context(), t, s.Store), s.allReads(admit(t, api), t, api))
	stats := api.StandbyStatistics()
	require.EqualValues(t, 9, stats.Reads, "changes, readings, two of aggregates, coverage, two of gaps, two exports")
	requireNoFallback(t, stats)

	// The errors that are answers come from the standby, too.
	ctx := admit(t, api)
	_, err := api.DeviceAggregates(ctx, uuid.New(), s.DeviceID, aggregate.Query{Window: days(1)})
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	requireNoFallback(t, api.StandbyStatistics())
	require.EqualValues(t, 10, api.StandbyStatistics().Reads)
}

// testCount counts exports as HEAD does, which must not read what it does not send.
func (s *standbyTest) testCount(t *testing.T, follower *server) {
	t.Helper()
	var received atomic.Int64
	tapped := dbtest.Tap(t, follower.As(t, schema.RoleAPI), func(m dbtest.Message) bool {
		if m.FromServer && m.Type == 'D' {
			received.Add(1)
		}
		return true
	})
	api := s.reading(t, tapped)
	ctx := admit(t, api)
	received.Store(0)
	want := len(s.export(t.Context(), t, s.Store, false))
	for _, wide := range []bool{false, true} {
		e, err := api.OpenExport(ctx, s.TeamID,
			roomsensor.ExportQuery{Window: days(4), Devices: s.devices, Lines: wide, CountOnly: true})
		require.NoError(t, err)
		require.Equal(t, want, e.Rows())
		require.NoError(t, e.Each(ctx, func(*roomsensor.ExportRow) error { return errors.New("a row") }))
		e.Close()
	}
	q := aggregate.ExportQuery{
		Window: days(4), Devices: s.devices, Calendar: aggregate.NewCalendar(aggregate.Hourly, time.UTC),
		Metrics: roomsensor.Metrics[:], Now: exportFrom.AddDate(0, 0, 4),
	}
	read, err := s.OpenAggregates(t.Context(), s.TeamID, q)
	require.NoError(t, err)
	q.CountOnly = true
	counted, err := api.OpenAggregates(ctx, s.TeamID, q)
	require.NoError(t, err)
	require.Equal(t, read.Rows(), counted.Rows())
	require.EqualValues(t, 3, api.StandbyStatistics().Reads)
	require.Less(t, received.Load(), int64(100), "rows of the standby, of %d readings", want)
}

func requireNoFallback(t *testing.T, stats pg.StandbyStatistics) {
	t.Helper()
	for reason, n := range stats.Fallbacks {
		require.Zero(t, n, reason)
	}
}

// testFreshness writes and reads in turn while the standby is a moment behind.
func (s *standbyTest) testFreshness(t *testing.T, follower *server) {
	t.Helper()
	conformance.Covers(t, "decision 43 a")
	follower.Set("recovery_min_apply_delay = '300ms'")
	api := s.reading(t, follower.As(t, schema.RoleAPI))
	for i := range 10 {
		s.WriteRows(t, co2(s.DeviceID, "2026-02-01T00:00:00Z", float32(1000+i)))
		var newest []roomsensor.Reading
		require.NoError(t, api.EachReading(admit(t, api), s.TeamID, s.DeviceID,
			roomsensor.ReadingQuery{Window: roomsensor.Window{From: exportFrom, To: roomsensor.Forever}, Limit: 1},
			func(r *roomsensor.Reading) { newest = append(newest, *r) }))
		require.Len(t, newest, 1)
		value, _ := newest[0].Values.Get(roomsensor.CO2)
		require.InDelta(t, 1000+i, value, 0)
		require.Contains(t, s.changes(t, api), place{s.DeviceID, at("2026-02-01T00:00:00Z")})
	}
	stats := api.StandbyStatistics()
	requireNoFallback(t, stats)
	require.EqualValues(t, 20, stats.Reads)
	require.Positive(t, stats.Waits)
	follower.Set("recovery_min_apply_delay = 0")
}

func (s *standbyTest) testLag(t *testing.T, follower *server) {
	t.Helper()
	conformance.Covers(t, "decision 43 a")
	api := s.reading(t, follower.As(t, schema.RoleAPI))
	follower.exec(t, "SELECT pg_wal_replay_pause()")
	defer follower.exec(t, "SELECT pg_wal_replay_resume()") // Also after a failure, for the other subtests.
	s.WriteRows(t, co2(s.DeviceID, "2026-02-02T00:00:00Z", 500))
	api.SetStandbyTimes(50*time.Millisecond, patience)
	want := s.allReads(t.Context(), t, s.Store)
	for range 2 { // The first read waits in vain, and the others do not wait.
		require.Equal(t, want, s.allReads(admit(t, api), t, api))
	}
	stats := api.StandbyStatistics()
	require.Zero(t, stats.Reads)
	require.EqualValues(t, 1, stats.Fallbacks[pg.FallbackLag])
	require.EqualValues(t, 15, stats.Fallbacks[pg.FallbackLeftOut])
	require.False(t, stats.Standbys[0].Used)
	results, err := api.CheckStandbys(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, results[0], "has not replayed")
	require.Positive(t, api.StandbyStatistics().Standbys[0].Lag)

	follower.exec(t, "SELECT pg_wal_replay_resume()")
	api.SetStandbyTimes(patience, patience)
	requireUsed(t, api)
	require.Zero(t, api.StandbyStatistics().Standbys[0].Lag)
	require.Equal(t, want, s.allReads(admit(t, api), t, api))
	require.EqualValues(t, 8, api.StandbyStatistics().Reads)
}

// testConflict removes what a read on the standby needs, while the read waits between two of its statements.
func (s *standbyTest) testConflict(t *testing.T, follower *server) {
	t.Helper()
	s.Exec(t, "INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT $1, '2025-06-01Z', 1", s.DeviceID)
	for name, remove := range map[string]func(){
		"vacuum": func() {
			s.Exec(t, "DELETE FROM readings WHERE bucket_at = $1", exportFrom)
			for _, chunk := range s.chunks(t) {
				s.Exec(t, "VACUUM "+chunk)
			}
		},
		"drop chunk": func() { s.Exec(t, "SELECT drop_chunks('readings', TIMESTAMPTZ '2025-07-01Z')") },
	} {
		t.Run(name, func(t *testing.T) {
			api := s.reading(t, follower.As(t, schema.RoleAPI))
			api.Readings.Limits.CoverageStatement, api.Readings.Limits.CoveragePage = 1, 1_000_000
			query := completeness.CoverageQuery{
				DeviceQuery: roomsensor.DeviceQuery{Limit: 1000},
				Window:      roomsensor.Window{From: exportFrom.AddDate(-1, 0, 0), To: exportFrom.AddDate(0, 0, 4)},
				Now:         exportFrom.AddDate(0, 0, 4),
			}
			var devices []uuid.UUID
			_, err := api.EachCoverage(admit(t, api), s.TeamID, query, func(c *completeness.DeviceCoverage) bool {
				if devices = append(devices, c.ID); len(devices) == 1 {
					remove()
					follower.awaitReplay(t, s.SQL)
				}
				return true
			})
			require.NoError(t, err)
			require.Equal(t, s.devices, devices, "the primary continues after the first device")
			stats := api.StandbyStatistics()
			require.Zero(t, stats.Reads)
			require.EqualValues(t, 1, stats.Fallbacks[pg.FallbackConflict]+stats.Fallbacks[pg.FallbackError])
		})
	}
}

// chunks returns the names of the chunks of readings.
func (s *standbyTest) chunks(t *testing.T) []string {
	t.Helper()
	rows, err := s.SQL.Query(t.Context(), `SELECT format('%I.%I', chunk_schema, chunk_name)
		FROM timescaledb_information.chunks WHERE hypertable_name = 'readings'`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

// testHang reads through connections that break without a sign, as those to a machine that is off the network.
func (s *standbyTest) testHang(t *testing.T, follower *server) {
	t.Helper()
	want := s.export(t.Context(), t, s.Store, false)
	silent := make(chan struct{})
	tapped := dbtest.Tap(t, follower.As(t, schema.RoleAPI), func(dbtest.Message) bool {
		select {
		case <-silent:
			<-t.Context().Done()
			return false
		default:
			return true
		}
	})
	api := s.reading(t, tapped)
	require.Equal(t, want, s.export(admit(t, api), t, api, false))
	require.EqualValues(t, 1, api.StandbyStatistics().Reads)
	ctx := admit(t, api)
	api.SetStandbyTimes(patience, 100*time.Millisecond)
	close(silent)
	require.Equal(t, want, s.export(ctx, t, api, false))
	stats := api.StandbyStatistics()
	require.EqualValues(t, 1, stats.Reads)
	require.EqualValues(t, 1, stats.Fallbacks[pg.FallbackTimeout])
	results, err := api.CheckStandbys(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, results[0], "does not answer")
	require.False(t, api.StandbyStatistics().Standbys[0].Used)
}

// testCrash kills the standby when it has sent the first row of an export.
func (s *standbyTest) testCrash(t *testing.T, follower *server) {
	t.Helper()
	conformance.Covers(t, "decision 32 e")
	want := s.export(t.Context(), t, s.Store, false)
	var once sync.Once
	armed := make(chan struct{})
	tapped := dbtest.Tap(t, follower.As(t, schema.RoleAPI), func(m dbtest.Message) bool {
		select {
		case <-armed:
		default:
			return true
		}
		if m.FromServer && m.Type == 'D' && len(m.Body) > 40 && len(m.Body) < 70 {
			once.Do(func() { require.NoError(t, follower.Kill()) })
			return false
		}
		return true
	})
	api := s.reading(t, tapped)
	ctx := admit(t, api)
	close(armed)
	require.Equal(t, want, s.export(ctx, t, api, false))
	once.Do(func() { require.Fail(t, "the export did not reach the standby") })
	stats := api.StandbyStatistics()
	require.Zero(t, stats.Reads)
	require.EqualValues(t, 1, stats.Fallbacks[pg.FallbackError])
	results, err := api.CheckStandbys(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, results[0], "does not answer")

	follower.Start()
	api = s.reading(t, follower.As(t, schema.RoleAPI))
	require.Equal(t, want, s.export(admit(t, api), t, api, false))
	require.EqualValues(t, 1, api.StandbyStatistics().Reads)
}

// testPromotion promotes the standby, and then lets each server take the place of the primary.
func (s *standbyTest) testPromotion(t *testing.T, follower *server) {
	t.Helper()
	conformance.Covers(t, "decision 43 a")
	other := s.primary.NewStandby()
	cascade := s.primary.NewStandby("checkpoint_timeout = '1d'", "bgwriter_lru_maxpages = 0")
	cascade.Set("primary_conninfo = '" + follower.URL + "'")
	(&server{cascade}).awaitSender(t, follower)
	api := s.reading(t, follower.As(t, schema.RoleAPI))
	want := s.allReads(t.Context(), t, s.Store)
	follower.Promote()
	follower.exec(t, "UPDATE readings SET co2_ppm = 9999")
	require.Equal(t, want, s.allReads(admit(t, api), t, api), "the store has not noticed the promotion")
	stats := api.StandbyStatistics()
	require.Zero(t, stats.Reads)
	require.EqualValues(t, 1, stats.Fallbacks[pg.FallbackForeign])
	require.False(t, stats.Standbys[0].Used)

	// A standby that followed through the promotion is one of the promoted server at once, and none of the old primary,
	// while its control file has the old timeline: it has no restart point, and writes nothing to disk.
	promoted := open(t, follower.As(t, schema.RoleAPI), store.API)
	promoted.SetStandbyTimes(patience, patience)
	require.NoError(t, promoted.ReadFrom(t.Context(), cascade.URL))
	requireUsed(t, promoted)
	old := open(t, s.primary.As(t, schema.RoleAPI), store.API)
	old.SetStandbyTimes(patience, patience)
	require.NoError(t, old.ReadFrom(t.Context(), cascade.URL))
	results, err := old.CheckStandbys(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, results[0], "is not a standby of the primary")

	// A standby of the old primary is none of the promoted server, whatever it has replayed.
	s.Exec(t, "CREATE TABLE ahead AS SELECT generate_series(1, 200000) AS n")
	promoted = open(t, follower.As(t, schema.RoleAPI), store.API)
	promoted.SetStandbyTimes(patience, patience)
	require.NoError(t, promoted.ReadFrom(t.Context(), other.As(t, schema.RoleAPI)))
	results, err = promoted.CheckStandbys(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, results[0], "is not a standby of the primary")

	// One of the promoted server is.
	its := follower.NewStandby()
	promoted = open(t, follower.As(t, schema.RoleAPI), store.API)
	promoted.SetStandbyTimes(patience, patience)
	require.NoError(t, promoted.ReadFrom(t.Context(), its.As(t, schema.RoleAPI)))
	requireUsed(t, promoted)
	s.export(admit(t, promoted), t, promoted, false)
	require.EqualValues(t, 1, promoted.StandbyStatistics().Reads)
}
