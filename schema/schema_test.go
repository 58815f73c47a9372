package schema_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/dbtest"
	"roomsensor/internal/localdb"
	"roomsensor/schema"
)

func TestUpTwiceAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	var both errgroup.Group
	for range 2 {
		both.Go(func() error { return schema.Up(t.Context(), url, schema.Layout{}) })
	}
	require.NoError(t, both.Wait())
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}), "and once more")

	migrations, err := schema.Status(t.Context(), url)
	require.NoError(t, err)
	require.NotEmpty(t, migrations)
	for _, m := range migrations {
		require.NotNil(t, m.AppliedAt, m.Name)
	}
	pending, err := schema.Pending(t.Context(), url)
	require.NoError(t, err)
	require.False(t, pending)
}

func TestUpDownUpEndsWhereItBegan(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	before := dump(t, url)
	require.Contains(t, before, "readings_hourly")

	for {
		undone, err := schema.Down(t.Context(), url)
		require.NoError(t, err)
		if !undone {
			break
		}
	}
	require.NotContains(t, dump(t, url), "readings", "nothing of ours stays")

	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	require.Equal(t, before, dump(t, url))
}

// No request is forgotten that counts for the limit of its key, whichever way
// the tables of the limit change (decision 25).
func TestRequestsCountAcrossMigrations(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	remaining := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT remaining FROM rate_window_hit('key')").Scan(&n))
		return n
	}
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	require.Equal(t, 599, remaining())
	require.Equal(t, 598, remaining())
	for {
		_, err := conn.Exec(t.Context(), "SELECT hits FROM rate_windows")
		if err == nil {
			break
		}
		undone, err := schema.Down(t.Context(), url)
		require.NoError(t, err)
		require.True(t, undone)
	}
	require.Equal(t, 597, remaining())
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	require.Equal(t, 596, remaining())
}

// Processes of before and after ask on while the tables of the limit change:
// none of their requests fails.
func TestRequestsPassWhileTheLimitIsMigrated(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	undone, err := schema.Down(t.Context(), url)
	require.NoError(t, err)
	require.True(t, undone)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "SELECT hits FROM rate_windows")
	require.NoError(t, err, "the tables are those of before")

	migrated := make(chan struct{})
	var processes errgroup.Group
	for i := range 4 {
		processes.Go(func() error { return askUntil(t.Context(), url, strconv.Itoa(i%2), migrated) })
	}
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	close(migrated)
	require.NoError(t, processes.Wait())
}

// askUntil asks as an API process does, and once more in the end.
func askUntil(ctx context.Context, url, key string, end <-chan struct{}) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for ended := false; ; {
		if _, err := conn.Exec(ctx, "SELECT allowed FROM rate_window_hit($1)", key); err != nil || ended {
			return err
		}
		select {
		case <-end:
			ended = true
		default:
		}
	}
}

// The edition may change under a database: then the next migration upwards
// makes the aggregate what the edition offers.
func TestViewBecomesAggregate(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `DROP MATERIALIZED VIEW readings_hourly`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE VIEW readings_hourly AS SELECT 1 AS as_apache_left_it`)
	require.NoError(t, err)

	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	var aggregates int
	require.NoError(t, conn.QueryRow(t.Context(),
		`SELECT count(*) FROM timescaledb_information.continuous_aggregates WHERE view_name = 'readings_hourly'`).Scan(&aggregates))
	require.Equal(t, 1, aggregates)
}

// The view and the aggregate are the same for whoever reads them: what the
// hours hold is plain arithmetic, in 64 bits, over the readings.
func TestHourlyIsPlainArithmetic(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.New(t).URL)
	_, err := conn.Exec(t.Context(), `
		INSERT INTO readings (device_id, bucket_at, co2_ppm, lux)
		SELECT '00000000-0000-0000-0000-000000000001', TIMESTAMPTZ '2026-01-01 00:00:00Z' + n * INTERVAL '5 minutes',
		       CASE WHEN n % 3 = 0 THEN NULL ELSE 400.1::real + n END, NULL
		FROM generate_series(0, 47) n`)
	require.NoError(t, err)
	var hours, wrong int
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT count(*), count(*) FILTER (WHERE h.co2_ppm_sum IS DISTINCT FROM r.total OR h.co2_ppm_count <> r.n
			OR h.lux_count <> 0 OR h.lux_min IS NOT NULL OR h.co2_ppm_max IS DISTINCT FROM r.most)
		FROM readings_hourly h
		JOIN (SELECT date_trunc('hour', bucket_at, 'UTC') AS hour, sum(co2_ppm::float8) AS total, count(co2_ppm) AS n, max(co2_ppm) AS most
		      FROM readings GROUP BY 1) r USING (hour)`).Scan(&hours, &wrong))
	require.Equal(t, 4, hours)
	require.Zero(t, wrong)
}

func TestReadingsLieOnTheGrid(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.New(t).URL)
	const insert = `INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), $1)`
	for at, ok := range map[string]bool{
		"2026-01-01 00:05:00+00": true, "2026-01-01 00:05:00+05:30": true,
		"2026-01-01 00:05:00.000001+00": false, "2026-01-01 00:04:00+00": false,
	} {
		_, err := conn.Exec(t.Context(), insert, at)
		require.Equal(t, ok, err == nil, "%s: %v", at, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

// What differs between two dumps of the same schema: a random token, a mark that
// newer servers put on columns and older dumps show, and the numbers in the
// names of what an aggregate is stored in.
var (
	randomLines = regexp.MustCompile(`(?m)^\\(un)?restrict .*$|^.* SET \(pg_attver=\d+\);\n`)
	numbers     = regexp.MustCompile(`(_hypertable_|_view_|watermark\()\d+`)
)

func dump(t *testing.T, url string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pgDump(t, url), "--schema-only", url).CombinedOutput()
	require.NoError(t, err, string(out))
	return numbers.ReplaceAllString(randomLines.ReplaceAllString(string(out), ""), "${1}N")
}

// pgDump finds a pg_dump that can read the server: its version must not be below.
func pgDump(t *testing.T, url string) string {
	t.Helper()
	var server int
	require.NoError(t, connect(t, url).QueryRow(t.Context(), `SELECT current_setting('server_version_num')::int / 10000`).Scan(&server))
	base, err := localdb.Base()
	require.NoError(t, err)
	candidates := []string{"pg_dump"}
	for _, root := range []string{"/", filepath.Join(base, "timescaledb"), filepath.Join(base, "timescaledb", "*")} {
		found, err := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin/pg_dump"))
		require.NoError(t, err)
		candidates = append(candidates, found...)
	}
	for _, candidate := range candidates {
		out, err := exec.CommandContext(t.Context(), candidate, "--version").Output()
		fields := strings.Fields(string(out))
		if err != nil || len(fields) < 3 {
			continue
		}
		major, _, _ := strings.Cut(fields[2], ".")
		if n, err := strconv.Atoi(major); err == nil && n >= server {
			return candidate
		}
	}
	t.Skipf("needs a pg_dump of PostgreSQL %d or later", server)
	return ""
}
