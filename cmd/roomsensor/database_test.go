package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/dbtest"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	o := &operator{t, map[string]string{"DATABASE_URL": database.URL}}

	status := o.do("migrate", "status")
	require.Nil(t, status["edition"])
	require.Nil(t, status["timescaledb_version"])
	require.Equal(t, false, status["up_to_date"])
	require.NotEmpty(t, status["data"])
	for _, migration := range migrations(t, status) {
		require.Nil(t, migration["applied_at"])
	}
	o.fails(cli.ExitFailure, "Run roomsensor migrate up", "team", "list")
	o.fails(cli.ExitFailure, "Run roomsensor migrate up", "team", "create", "--name", "x")
	o.fails(cli.ExitFailure, "Run roomsensor migrate up", "rejects", "list")

	up := o.do("migrate", "up")
	require.Equal(t, dbtest.Edition(t), up["edition"])
	require.Regexp(t, `^\d+\.\d+\.\d+`, up["timescaledb_version"])
	require.Equal(t, true, up["up_to_date"])
	require.Nil(t, status["readings"])
	layout, ok := up["readings"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 0, layout["chunks"], 0)
	require.Nil(t, layout["keep_seconds"])
	require.Equal(t, dbtest.Edition(t) == "community", layout["columnstore"] != nil)
	require.Equal(t, dbtest.Edition(t) == "community", layout["hourly"] != nil)
	for _, migration := range migrations(t, up) {
		require.Regexp(t, `Z$`, migration["applied_at"])
		require.Regexp(t, `\.sql$`, migration["name"])
	}
	require.Equal(t, up, o.do("migrate", "up"), "nothing is left to do")
	require.Equal(t, up, o.do("migrate", "status"))
	require.Empty(t, o.data("team", "list"))
}

// TestMigrateOldDatabase checks that a database whose migrations have other numbers is refused, and that nothing changes.
func TestMigrateOldDatabase(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	conn, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE FUNCTION rate_window_hit(for_key_id text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE TABLE goose_db_version (id serial, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp DEFAULT now());
		INSERT INTO goose_db_version (version_id, is_applied) SELECT n, true FROM generate_series(0, 42) n`)
	require.NoError(t, err)
	o := &operator{t, map[string]string{"DATABASE_URL": database.URL}}
	for _, args := range [][]string{{"migrate", "up"}, {"migrate", "status"}, {"team", "list"}} {
		o.fails(cli.ExitFailure, "from before the first release", args...)
		o.fails(cli.ExitFailure, "createdb", args...)
	}
	var tables, applied int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_tables WHERE schemaname = 'public'),
		(SELECT count(*) FROM goose_db_version)`).Scan(&tables, &applied))
	require.Equal(t, []int{1, 43}, []int{tables, applied})
	require.NoError(t, conn.Close(t.Context()))
}

func TestMigrateUpLayout(t *testing.T) {
	t.Parallel()
	o := &operator{t, map[string]string{"DATABASE_URL": dbtest.Empty(t).URL}}
	for _, age := range []string{"", "0", "12h", "1w", "-1d", "forever"} {
		o.fails(cli.ExitUsage, "COLUMNSTORE_AFTER", "migrate", "up", "--columnstore-after="+age)
		o.fails(cli.ExitUsage, "READINGS_KEEP", "migrate", "up", "--readings-keep="+age)
	}
	up := o.do("migrate", "up", "--columnstore-after", "14d", "--readings-keep", "800d")
	layout, ok := up["readings"].(map[string]any)
	require.True(t, ok)
	if dbtest.Edition(t) != "community" {
		require.Nil(t, layout["keep_seconds"], "the Apache edition keeps everything")
		return
	}
	require.InDelta(t, 800*24*3600, layout["keep_seconds"], 0)
	columnstore, ok := layout["columnstore"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 14*24*3600, columnstore["after_seconds"], 0)
}

func TestMigrateUpRequirements(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).With("default_transaction_read_only", "on")
	o := &operator{t, map[string]string{"DATABASE_URL": url}}
	o.fails(cli.ExitFailure, "Its server must be PostgreSQL 15 or later, and preload TimescaleDB 2.19 or later", "migrate", "up")
}

func migrations(t *testing.T, state map[string]any) (list []map[string]any) {
	t.Helper()
	items, ok := state["data"].([]any)
	require.True(t, ok)
	for _, item := range items {
		migration, ok := item.(map[string]any)
		require.True(t, ok)
		list = append(list, migration)
	}
	return list
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	o := &operator{t, map[string]string{"DATABASE_URL": url}}
	require.Empty(t, o.data("maintain"))
	o.fails(cli.ExitUsage, "--after", "maintain", "--after", "soon")
	o.fails(cli.ExitUsage, "--limit", "maintain", "--limit", "0")

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at) SELECT gen_random_uuid(), '2026-01-01Z' FROM generate_series(1, 100)`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // Until the statistics contain the rows.
		var n int
		_, err := conn.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM chunks_to_order('2026-02-01Z')").Scan(&n))
		return n == 1
	}, waitTimeout, 20*time.Millisecond)
	_, err = conn.Exec(t.Context(), `INSERT INTO postponed_chunks SELECT show_chunks('readings')::text, now() + INTERVAL '1 day', '10 min'`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	skipped := o.data("maintain")
	require.Len(t, skipped, 1)
	require.Equal(t, false, skipped[0]["ordered"])
	require.Contains(t, skipped[0]["reason"], "or earlier with a longer limit")

	chunks := o.data("maintain", "--after", "14d", "--timeout", "11m")
	require.Len(t, chunks, 1)
	require.Equal(t, true, chunks[0]["ordered"])
	require.Nil(t, chunks[0]["reason"])
	require.Empty(t, o.data("maintain"), "once")
}
