package schema_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/dev/postgres"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

const day = 24 * time.Hour

// TestUp runs two migrations at once, as two replicas of a deployment may, and then another one.
func TestUp(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	var both errgroup.Group
	for range 2 {
		both.Go(func() error { return schema.Up(t.Context(), url, schema.Layout{}) })
	}
	require.NoError(t, both.Wait())
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}), "again")

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

// TestLocks checks that each advisory lock has a key of its own, which is not one of the change feed.
func TestLocks(t *testing.T) {
	t.Parallel()
	var locks, keys int
	var feed bool
	require.NoError(t, connect(t, dbtest.New(t).URL).QueryRow(t.Context(), `
		SELECT count(*), count(DISTINCT lock_key(l)), bool_or(lock_key(l) >= feed_key(0))
		FROM unnest(enum_range(NULL::advisory_lock)) l`).Scan(&locks, &keys, &feed))
	require.Positive(t, locks)
	require.Equal(t, locks, keys)
	require.False(t, feed)
}

// TestUpAfterEditionChange starts from the view of the Apache edition: Up replaces it by the continuous aggregate.
func TestUpAfterEditionChange(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `DROP MATERIALIZED VIEW readings_hourly`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE VIEW readings_hourly AS SELECT 1 AS created_by_apache`)
	require.NoError(t, err)

	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	var aggregates int
	require.NoError(t, conn.QueryRow(t.Context(),
		`SELECT count(*) FROM timescaledb_information.continuous_aggregates WHERE view_name = 'readings_hourly'`).Scan(&aggregates))
	require.Equal(t, 1, aggregates)
}

// TestUpLayout checks that each Up sets the policies that it is given, whatever they were before.
func TestUpLayout(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	for _, want := range []schema.Layout{
		{ColumnstoreAfter: 30 * day},
		{ColumnstoreAfter: 30 * day, DropAfter: 400 * day},
		{ColumnstoreAfter: 14 * day, DropAfter: 800 * day},
		{DropAfter: 800 * day},
		{},
	} {
		require.NoError(t, schema.Up(t.Context(), url, want))
		require.NoError(t, schema.Up(t.Context(), url, want), "again")
		var columnstore, drop float64
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT coalesce(extract(epoch FROM columnstore_after), 0), coalesce(extract(epoch FROM drop_after), 0)
			FROM readings_layout()`).Scan(&columnstore, &drop))
		require.Equal(t, want, schema.Layout{
			ColumnstoreAfter: time.Duration(columnstore) * time.Second, DropAfter: time.Duration(drop) * time.Second,
		})
	}
}

// TestUpChunkInterval checks that an Up with a length sets that of new chunks, also of those of the aggregate, that one
// without a length keeps it, and that existing chunks stay as they are.
func TestUpChunkInterval(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	conn := connect(t, url)
	for i, test := range []struct{ set, want time.Duration }{{0, 7 * day}, {day, day}, {0, day}, {day, day}, {14 * day, 14 * day}} {
		require.NoError(t, schema.Up(t.Context(), url, schema.Layout{ChunkInterval: test.set}))
		_, err := conn.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), $1)`,
			time.Date(2016+i, 1, 1, 0, 0, 0, 0, time.UTC))
		require.NoError(t, err)
		var length, aggregate float64
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT extract(epoch FROM (array_agg(range_end - range_start ORDER BY range_end DESC))[1]),
			       coalesce((SELECT extract(epoch FROM d.time_interval) FROM timescaledb_information.continuous_aggregates a
			                 JOIN timescaledb_information.dimensions d ON d.hypertable_schema = a.materialization_hypertable_schema
			                     AND d.hypertable_name = a.materialization_hypertable_name), 0)
			FROM timescaledb_information.chunks WHERE hypertable_name = 'readings'`).Scan(&length, &aggregate))
		require.Equal(t, test.want, time.Duration(length)*time.Second)
		if dbtest.Edition(t) == postgres.Community {
			require.Equal(t, 10*test.want, time.Duration(aggregate)*time.Second)
		}
	}
	var lengths []string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT array_agg(((range_end - range_start)::interval)::text ORDER BY range_start)
		FROM timescaledb_information.chunks WHERE hypertable_name = 'readings'`).Scan(&lengths))
	require.Equal(t, []string{"7 days", "1 day", "1 day", "1 day", "14 days"}, lengths)
}

// TestColumnstore checks that the readings stay the same when their chunks are converted to columns, and that columns take
// less than a third of the space of the rows.
func TestColumnstore(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	checksum := func() (sum string) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(),
			`SELECT md5(string_agg(r::text, ';' ORDER BY device_id, bucket_at)) FROM readings r`).Scan(&sum))
		return sum
	}
	exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, measured_at)
		SELECT ('00000000-0000-0000-0000-00000000000' || d)::uuid, TIMESTAMPTZ '2026-01-01 00:00:00Z' + n * INTERVAL '5 minutes',
		       400 + n % 100, NULL, TIMESTAMPTZ '2026-01-01 00:00:03Z' + n * INTERVAL '5 minutes'
		FROM generate_series(0, 4000) n, generate_series(1, 3) d`)
	before := checksum()
	exec(`DO $$ DECLARE c regclass; BEGIN
		FOR c IN SELECT show_chunks('readings') LOOP CALL convert_to_columnstore(c); END LOOP; END $$`)
	require.Equal(t, before, checksum())
	var chunks, columnChunks, asRows, asColumns int64
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT chunks, columnstore_chunks, columnstore_bytes_before, columnstore_bytes FROM readings_layout()`,
	).Scan(&chunks, &columnChunks, &asRows, &asColumns))
	require.Positive(t, chunks)
	require.Equal(t, chunks, columnChunks)
	require.Greater(t, asRows, 3*asColumns)
}

// TestReadingsHourly compares the hourly values, of the view or of the aggregate, with double-precision sums over the
// readings.
func TestReadingsHourly(t *testing.T) {
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

// TestReadingsBucket checks that the readings table accepts only the starts of 5-minute buckets.
func TestReadingsBucket(t *testing.T) {
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
