package env

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// CommitTimes is the setting with which a server records the time of each commit.
const CommitTimes = "track_commit_timestamp"

// ObservedSettings are Settings of a server that also records the time of each statement and of each commit.
func ObservedSettings() map[string]string {
	settings := map[string]string{
		"shared_preload_libraries":          "timescaledb,pg_stat_statements",
		"pg_stat_statements.track_planning": "on",
		CommitTimes:                         "on",
	}
	maps.Copy(settings, Settings())
	return settings
}

// StatementTime returns how long the database executed statements during some work, planning and sending included.
// pattern is a regular expression for the text of these statements. ok is false if the server does not record it: one
// that is given needs pg_stat_statements in shared_preload_libraries.
func (e *Env) StatementTime(
	ctx context.Context, pattern string, work func() error,
) (total time.Duration, ok bool, err error) {
	const loaded = "SELECT current_setting('shared_preload_libraries') LIKE '%pg_stat_statements%'"
	if err := e.Pool.QueryRow(ctx, loaded).Scan(&ok); err != nil {
		return 0, false, fmt.Errorf("reading shared_preload_libraries: %w", err)
	}
	if !ok {
		return 0, false, work()
	}
	for _, sql := range []string{
		"CREATE EXTENSION IF NOT EXISTS pg_stat_statements",
		"SELECT pg_stat_statements_reset(0, (SELECT oid FROM pg_database WHERE datname = current_database()), 0)",
	} {
		if _, err := e.Pool.Exec(ctx, sql); err != nil {
			return 0, false, fmt.Errorf("resetting pg_stat_statements: %w", err)
		}
	}
	if err := work(); err != nil {
		return 0, false, err
	}
	var milliseconds float64
	err = e.Pool.QueryRow(ctx, "SELECT coalesce(sum(total_plan_time + total_exec_time), 0) FROM pg_stat_statements"+
		" WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND toplevel"+
		" AND query ~ $1", pattern).Scan(&milliseconds)
	if err != nil {
		return 0, false, fmt.Errorf("reading pg_stat_statements: %w", err)
	}
	return time.Duration(milliseconds * float64(time.Millisecond)), true, nil
}

// Commit is when a reading was committed.
type Commit struct {
	DeviceID [16]byte
	BucketAt time.Time
	At       time.Time
}

// Commits returns when the readings of a window were committed. exact is false if the server does not record it, which
// needs track_commit_timestamp: then it is when they were written, some milliseconds earlier.
func (e *Env) Commits(ctx context.Context, w roomsensor.Window) (commits []Commit, exact bool, err error) {
	if err := e.Pool.QueryRow(ctx, "SELECT current_setting('track_commit_timestamp')::boolean").Scan(&exact); err != nil {
		return nil, false, fmt.Errorf("reading track_commit_timestamp: %w", err)
	}
	at := "ingested_at"
	if exact {
		at = "pg_xact_commit_timestamp(xmin)"
	}
	rows, err := e.Pool.Query(ctx, "SELECT device_id, bucket_at, "+at+
		" FROM readings WHERE bucket_at >= $1 AND bucket_at < $2", w.From, w.To)
	if err != nil {
		return nil, false, fmt.Errorf("reading the times of commits: %w", err)
	}
	if commits, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Commit]); err != nil {
		return nil, false, fmt.Errorf("reading the times of commits: %w", err)
	}
	return commits, exact, nil
}
