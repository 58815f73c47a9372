package readings_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/test/dbtest"
)

// validHours returns the result of readings_hourly_valid, as "from to" in days and hours of January 2026.
func validHours(ctx context.Context, t *testing.T, conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, from, to string,
) (hours []string) {
	t.Helper()
	rows, err := conn.Query(ctx, "SELECT hours_from, hours_to FROM readings_hourly_valid($1, $2)", at(from), at(to))
	require.NoError(t, err)
	var since, until time.Time
	_, err = pgx.ForEachRow(rows, []any{&since, &until}, func() error {
		hours = append(hours, since.UTC().Format("2T15:04 ")+until.UTC().Format("2T15:04"))
		return nil
	})
	require.NoError(t, err)
	return hours
}

// TestHourlyValid checks which hours count as valid, for every state of TimescaleDB's logs. On the Apache edition, which
// has the tables but no aggregate, the test inserts one into them, in a transaction.
func TestHourlyValid(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const from, to = "2026-01-02T00:30:00Z", "2026-01-06T00:00:00Z"
	if dbtest.Edition(t) == postgres.Apache {
		require.Empty(t, validHours(t.Context(), t, f.SQL, from, to), "a view stores no hours")
	}
	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := tx.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	hypertable := "(SELECT mat_hypertable_id FROM _timescaledb_catalog.continuous_agg WHERE user_view_name = 'readings_hourly')"
	source := "(SELECT id FROM _timescaledb_catalog.hypertable WHERE table_name = 'readings')"
	if dbtest.Edition(t) == postgres.Apache {
		exec(`INSERT INTO _timescaledb_catalog.continuous_agg (mat_hypertable_id, raw_hypertable_id, user_view_schema, user_view_name,
			partial_view_schema, partial_view_name, direct_view_schema, direct_view_name)
			SELECT h.id, id, 'public', 'readings_hourly', 'x', 'y', 'x', 'y' FROM _timescaledb_catalog.hypertable h WHERE table_name = 'readings'`)
		exec("INSERT INTO _timescaledb_catalog.continuous_aggs_watermark SELECT " + hypertable + ", -210866803200000000")
	}
	exec("DELETE FROM _timescaledb_catalog.continuous_aggs_materialization_invalidation_log")
	micros := func(text string) int64 { return at(text).UnixMicro() }
	watermark := func(text string) {
		t.Helper()
		exec("UPDATE _timescaledb_catalog.continuous_aggs_watermark SET watermark = $1 WHERE mat_hypertable_id = "+hypertable, micros(text))
	}
	written := func(log, id, first, last string) {
		t.Helper()
		exec(fmt.Sprintf("INSERT INTO _timescaledb_catalog.%s VALUES (%s, $1, $2)", log, id), micros(first), micros(last))
	}
	valid := func(want ...string) {
		t.Helper()
		require.Equal(t, want, validHours(t.Context(), t, tx, from, to))
	}
	valid()
	watermark("2026-01-01T00:00:00Z")
	valid()
	watermark("2026-01-04T07:00:00Z")
	valid("2T01:00 4T07:00")
	watermark("2026-02-01T00:00:00Z")
	valid("2T01:00 6T00:00")
	const transactions, refreshes = "continuous_aggs_hypertable_invalidation_log", "continuous_aggs_materialization_invalidation_log"
	written(transactions, source, "2026-01-03T05:10:00Z", "2026-01-03T05:10:00Z")
	valid("2T01:00 3T05:00", "3T06:00 6T00:00")
	written(transactions, source, "2026-01-03T05:59:59.999999Z", "2026-01-03T06:00:00Z")
	valid("2T01:00 3T05:00", "3T07:00 6T00:00")
	written(refreshes, hypertable, "2025-01-01T00:00:00Z", "2026-01-02T09:00:00Z")
	written(refreshes, hypertable, "2026-01-05T00:00:00Z", "2030-01-01T00:00:00Z")
	valid("2T10:00 3T05:00", "3T07:00 5T00:00")
	exec("INSERT INTO _timescaledb_catalog." + transactions + " VALUES (" + source + ", -9223372036854775808, 9223372036854775807)")
	valid()
}

// TestAggregatesAfterRefresh checks on the Community edition that a late reading counts at once in an hour that is stored
// (A1.8), before and after the next refresh.
func TestAggregatesAfterRefresh(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	f := setup(t)
	f.Fill(t, 12*24*20, f.DeviceID)
	w := days(20)
	q := aggregate.Query{Window: w, Buckets: aggregate.NewCalendar(aggregate.Daily, time.UTC).Newest(w, 20), Now: w.To}
	present := func() (n int) {
		list, err := f.DeviceAggregates(t.Context(), f.TeamID, f.DeviceID, q)
		require.NoError(t, err)
		for i := range list {
			n += list[i].Present
		}
		return n
	}
	refresh := func() {
		f.Exec(t, "CALL refresh_continuous_aggregate('readings_hourly', NULL, now() - INTERVAL '2 days')")
	}
	require.Equal(t, 12*24*20, present())
	refresh()
	require.Equal(t, []string{"1T00:00 21T00:00"}, validHours(t.Context(), t, f.SQL, "2026-01-01T00:00:00Z", "2026-01-21T00:00:00Z"))
	require.Equal(t, 12*24*20, present())
	f.Exec(t, "DELETE FROM readings WHERE bucket_at >= '2026-01-05 10:00Z' AND bucket_at < '2026-01-05 10:30Z'")
	require.Equal(t, 12*24*20-6, present(), "deleted")
	require.Len(t, validHours(t.Context(), t, f.SQL, "2026-01-01T00:00:00Z", "2026-01-21T00:00:00Z"), 2)
	refresh()
	require.Equal(t, 12*24*20-6, present(), "and refreshed")
	f.WriteRows(t, co2(f.DeviceID, "2026-01-05T10:00:03Z", 612))
	require.Equal(t, 12*24*20-5, present(), "delivered late")
	refresh()
	require.Len(t, validHours(t.Context(), t, f.SQL, "2026-01-01T00:00:00Z", "2026-01-21T00:00:00Z"), 1)
	require.Equal(t, 12*24*20-5, present())
	f.Exec(t, "SELECT drop_chunks('readings', older_than => TIMESTAMPTZ '2026-01-16 00:00Z')")
	rows := 0
	require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT count(*) FROM readings").Scan(&rows))
	require.Less(t, rows, 12*24*20-5)
	require.Equal(t, rows, present(), "chunks were dropped")
}
