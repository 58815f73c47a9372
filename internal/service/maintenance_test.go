package service

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

// TestMaintainer checks that a worker rewrites nothing outside the maintenance window, no chunk within it that is
// postponed or too large for the time limit, and each other chunk once.
func TestMaintainer(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(),
		`INSERT INTO readings (device_id, bucket_at) SELECT gen_random_uuid(), '2026-01-01Z' FROM generate_series(1, 50)`)
	require.NoError(t, err)
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	defer s.Close()

	now := time.Date(2026, 11, 21, 1, 59, 0, 0, time.UTC)
	require.Eventually(t, func() bool { // The planner statistics are flushed asynchronously.
		_, err := conn.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		require.NoError(t, err)
		chunks, err := s.ChunksToOrder(t.Context(), now, time.Minute)
		return err == nil && len(chunks) == 1
	}, time.Minute, 20*time.Millisecond)

	cfg := config.Defaults[config.Maintenance]()
	require.NoError(t, cfg.MaintainWindow.UnmarshalText([]byte("02:00-04:00")))
	m := newMaintainer(s, &cfg, zerolog.Nop(), prometheus.NewRegistry())
	m.now = func() time.Time { return now }
	require.NoError(t, m.rewriteChunks(t.Context()))
	require.Zero(t, proctest.Value(t, m.ordered))
	now = now.Add(time.Minute)
	deferred := func(reason process.Deferral) {
		t.Helper()
		require.NoError(t, m.rewriteChunks(t.Context()))
		require.Zero(t, proctest.Value(t, m.ordered))
		require.InDelta(t, 1, proctest.Value(t, m.waiting), 0)
		require.InDelta(t, 1, proctest.Value(t, m.deferred.WithLabelValues(string(reason))), 0)
	}
	cfg.MaintainTimeout = 1
	deferred(process.ChunkTooLarge)
	cfg.MaintainTimeout = config.Duration(time.Minute)
	_, err = conn.Exec(t.Context(), `INSERT INTO postponed_chunks SELECT show_chunks('readings')::text, now() + INTERVAL '1 day', '1 min'`)
	require.NoError(t, err)
	deferred(process.ChunkPostponed)
	cfg.MaintainTimeout += config.Duration(time.Second)
	require.NoError(t, m.rewriteChunks(t.Context()))
	require.InDelta(t, 1, proctest.Value(t, m.ordered), 0)
	require.NoError(t, m.rewriteChunks(t.Context()))
	require.InDelta(t, 1, proctest.Value(t, m.ordered), 0, "once")
	require.Zero(t, proctest.Value(t, m.waiting))
}

// TestMaintainerExpires checks that a worker counts the readings that it deletes, and a pass that fails.
func TestMaintainerExpires(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec(`INSERT INTO teams (name, keep_days) VALUES ('Team', 1)`)
	exec(`INSERT INTO devices (team_id, hardware_id) SELECT id, 'dev:1' FROM teams`)
	exec(`INSERT INTO readings (device_id, bucket_at) SELECT id, '2024-01-01Z' FROM devices`)
	exec(`INSERT INTO samples (device_id, measured_at) SELECT id, '2024-01-01 00:01Z' FROM devices`)
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	defer s.Close()
	cfg := config.Defaults[config.Maintenance]()
	m := newMaintainer(s, &cfg, zerolog.Nop(), prometheus.NewRegistry())
	m.expireReadings(t.Context())
	m.expireReadings(t.Context())
	require.InDelta(t, 1, proctest.Value(t, m.expired), 0)
	require.InDelta(t, 1, proctest.Value(t, m.expiredSamples), 0)
	require.Zero(t, proctest.Value(t, m.expireFailures))

	exec(`UPDATE retention_state SET began_at = '-infinity'`)
	exec(`DROP FUNCTION expire_readings`)
	exec(`INSERT INTO readings (device_id, bucket_at) SELECT id, '2024-01-01Z' FROM devices`)
	m.expireReadings(t.Context())
	require.InDelta(t, 1, proctest.Value(t, m.expireFailures), 0)
	exec(`DROP TABLE retention_state`)
	m.expireReadings(t.Context())
	require.InDelta(t, 1, proctest.Value(t, m.failures), 0, "no pass began")
}
