package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

// TestStatistics checks that a worker reads the figures of the database with its own rights.
func TestStatistics(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-03-02T12:00:00Z")
	f.Exec(t, "UPDATE device_state SET last_seen_at = $1", now.Add(-time.Hour+time.Microsecond)) // Online, just so.
	for unit, age := range map[string]time.Duration{
		"dev:2": time.Hour, "dev:3": 24 * time.Hour, "dev:4": 24*time.Hour + time.Microsecond,
	} {
		f.Exec(t, "UPDATE device_state SET last_seen_at = $2 WHERE device_id = $1", f.NewDevice(t, unit), now.Add(-age))
	}
	f.InsertDevice(t) // It was never seen.
	f.interleave(t, "2026-01-08T00:00:00Z", 10)
	worker := open(t, (&dbtest.DB{URL: f.URL}).As(t, schema.RoleWorker), store.Ingest)
	stats, err := worker.Statistics(t.Context(), now, now)
	require.NoError(t, err)
	require.Equal(t, map[roomsensor.Status]int64{roomsensor.Online: 1, roomsensor.Stale: 2, roomsensor.Offline: 2}, stats.Devices)
	require.Positive(t, stats.Chunks)
	require.GreaterOrEqual(t, stats.AllChunks, int(stats.Chunks))
	require.Greater(t, stats.Bytes, stats.Layout.Bytes)
	require.Positive(t, stats.Layout.Bytes)
	require.Positive(t, stats.MaxLocks)
	require.Positive(t, stats.Connections)
	require.Greater(t, stats.MaxConnections, stats.Connections)
}

// TestExpiringKeys checks that keys that expire soon are counted, unless they were rotated.
func TestExpiringKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, table := range []string{"api_keys", "ingest_keys"} {
		f.Exec(t, "INSERT INTO "+table+` (key_id, team_id, secret_sha256, created_at, expires_at, revoked_at)
			SELECT key_id, $1, sha256(key_id::bytea), now() + created * INTERVAL '1 hour', now() + expires * INTERVAL '1 hour',
			       CASE WHEN revoked THEN now() END
			FROM (VALUES ('expired', 1, -1, false), ('revoked', 2, 5, true), ('soon', 3, 24, false), ('sooner', 4, 12, false),
			             ('later', 0, 1000, false)) AS k (key_id, created, expires, revoked)`, f.TeamID)
	}
	before := time.Now().Add(7 * 24 * time.Hour)
	counts := func() [2]int64 {
		api, err := f.ExpiringAPIKeys(t.Context(), before)
		require.NoError(t, err)
		stats, err := f.Statistics(t.Context(), time.Now(), before)
		require.NoError(t, err)
		return [2]int64{api, stats.ExpiringKeys}
	}
	require.Equal(t, [2]int64{2, 2}, counts())
	for _, table := range []string{"api_keys", "ingest_keys"} { // The successor of soon, and not yet that of sooner.
		f.Exec(t, "UPDATE "+table+" SET created_at = now() + INTERVAL '210 minutes' WHERE key_id = 'later'")
	}
	require.Equal(t, [2]int64{1, 1}, counts())
}

func TestPools(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := open(t, f.URL, store.API)
	require.NoError(t, s.Ping(t.Context()))
	pools := map[string]pg.Pool{}
	for _, pool := range s.Pools() {
		pools[pool.Name] = pool
	}
	require.Len(t, pools, 3)
	require.Equal(t, 16, pools["main"].Max)
	require.Equal(t, 4, pools["admission"].Max)
	require.Equal(t, 16, pools["export"].Max)
	require.Equal(t, 1, pools["admission"].Idle, "a probe uses a connection for admission")
	require.Len(t, open(t, f.URL, store.Operator).Pools(), 1, "an operator has one pool")
}

func TestDatabaseNeededLocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ maxLocks, chunks, want int }{
		{64, 0, 0}, {64, 32, 0}, {64, 33, 256}, {256, 128, 0}, {256, 129, 512}, {256, 621, 2048},
	} {
		require.Equal(t, test.want, ops.Database{MaxLocks: test.maxLocks, Chunks: test.chunks}.NeededLocks(), test)
	}

	f := setup(t)
	before, err := f.Database(t.Context())
	require.NoError(t, err)
	require.Positive(t, before.MaxLocks)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2020-01-01')`, f.DeviceID)
	after, err := f.Database(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Chunks+1, after.Chunks)
}
