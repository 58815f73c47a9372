package ops_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
)

// interleave stores readings of all devices, by time as they arrive.
func (f *fixture) interleave(t *testing.T, from string, n int) {
	t.Helper()
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT id, $1::timestamptz + i * INTERVAL '5 minutes', i FROM generate_series(0, $2 - 1) i, devices`, from, n)
}

// timeLimit is longer than any rewrite in a test takes.
const timeLimit = 10 * time.Minute

// chunksToOrder waits until the statistics contain the latest writes and a number of chunks is to be ordered.
func (f *fixture) chunksToOrder(t *testing.T, want int) []ops.Chunk {
	t.Helper()
	var chunks []ops.Chunk
	require.Eventually(t, func() bool {
		f.Exec(t, "SELECT pg_stat_force_next_flush()")
		var err error
		chunks, err = f.ChunksToOrder(t.Context(), at("2026-03-01T00:00:00Z"), timeLimit)
		require.NoError(t, err)
		return len(chunks) == want
	}, patience, 20*time.Millisecond)
	return chunks
}

// deviceChanges counts how often consecutive rows on disk belong to different devices.
func (f *fixture) deviceChanges(t *testing.T, chunk string) (n int) {
	t.Helper()
	require.NoError(t, f.SQL.QueryRow(t.Context(), `
		SELECT count(*) FROM (SELECT device_id, lag(device_id) OVER (ORDER BY ctid) AS before FROM `+chunk+`) r
		WHERE device_id <> before`).Scan(&n))
	return n
}

// TestOrderChunk checks that a settled chunk is ordered once, and again after many changes, and that its readings stay
// the same.
func TestOrderChunk(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.NewDevice(t, "dev:2")
	f.interleave(t, "2026-01-08T00:00:00Z", 1000) // At most two chunks.
	f.interleave(t, "2026-03-05T00:00:00Z", 10)   // In a chunk that has not settled.
	before := f.ReadAll(t, f.DeviceID)
	chunks, err := f.ChunksToOrder(t.Context(), at("2026-03-01T00:00:00Z"), timeLimit)
	require.NoError(t, err)
	chunks = f.chunksToOrder(t, max(1, len(chunks)))
	for _, chunk := range chunks {
		require.False(t, chunk.Range.To.After(at("2026-03-01T00:00:00Z")))
		require.Positive(t, chunk.Bytes)
		require.Greater(t, f.deviceChanges(t, chunk.Name), 10)
		require.NoError(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit))
		require.Equal(t, 1, f.deviceChanges(t, chunk.Name))
	}
	f.chunksToOrder(t, 0)
	require.Equal(t, before, f.ReadAll(t, f.DeviceID))

	f.WriteRows(t, co2(f.DeviceID, "2026-01-08T00:02:00Z", 7))
	f.chunksToOrder(t, 0)
	f.Exec(t, "UPDATE readings SET co2_ppm = 8 WHERE bucket_at BETWEEN '2026-01-08' AND '2026-01-09'")
	chunk := f.chunksToOrder(t, 1)[0]
	require.NoError(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit))
	f.chunksToOrder(t, 0)
}

// TestOrderChunkConcurrent checks that the snapshot and pages of newer readings work while a chunk is locked for its
// rewrite, that only one process orders chunks, and that a chunk in use is skipped.
func TestOrderChunkConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-03-05T00:30:00Z")
	f.interleave(t, "2026-01-08T00:00:00Z", 100)
	f.interleave(t, "2026-03-05T00:00:00Z", 6)
	chunk := f.chunksToOrder(t, 1)[0]

	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "SELECT order_chunk($1)", chunk.Name)
	require.NoError(t, err)

	current, err := f.CurrentDevices(t.Context(), f.TeamID, roomsensor.DeviceQuery{Limit: 10}, roomsensor.SummaryWindow(now))
	require.NoError(t, err)
	require.Equal(t, at("2026-03-05T00:25:00Z"), current[0].Latest.BucketAt)
	require.Len(t, f.ReadPage(t, f.TeamID, f.DeviceID, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: now.Add(-time.Hour), To: now}, Limit: 10,
	}), 6)
	require.ErrorIs(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit), ops.ErrRewriteRunning)
	require.NoError(t, tx.Rollback(t.Context()))

	reader, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = reader.Rollback(context.Background()) }()
	_, err = reader.Exec(t.Context(), "LOCK TABLE "+chunk.Name+" IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.ErrorIs(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit), ops.ErrChunkInUse, "a reader is not interrupted")
	require.NoError(t, reader.Rollback(t.Context()))
	require.NoError(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit))
}

// TestOrderChunkTimeout checks that a chunk whose rewrite exceeds its time limit is postponed for every process, unless
// that has a longer limit, and that a chunk in use is not. The limit here is shorter than the wait for the lock.
func TestOrderChunkTimeout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.interleave(t, "2026-01-08T00:00:00Z", 10)
	chunk := f.chunksToOrder(t, 1)[0]
	worker := open(t, f.URL, store.Ingest)
	postponedUntil := func(limit time.Duration) *time.Time {
		chunks, err := worker.ChunksToOrder(t.Context(), at("2026-03-01T00:00:00Z"), limit)
		require.NoError(t, err)
		require.Len(t, chunks, 1)
		return chunks[0].PostponedUntil
	}

	reader, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = reader.Rollback(context.Background()) }()
	_, err = reader.Exec(t.Context(), "LOCK TABLE "+chunk.Name+" IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.ErrorIs(t, f.OrderChunk(t.Context(), chunk.Name, timeLimit), ops.ErrChunkInUse)
	require.Nil(t, postponedUntil(timeLimit))
	const short = 100 * time.Millisecond
	for range 2 { // The second attempt postpones it again.
		require.ErrorIs(t, f.OrderChunk(t.Context(), chunk.Name, short), ops.ErrRewriteTooLong)
		require.WithinDuration(t, time.Now().Add(24*time.Hour), *postponedUntil(short), time.Minute)
		require.Nil(t, postponedUntil(short+time.Millisecond))
	}
	f.Exec(t, "UPDATE postponed_chunks SET postponed_until = now()")
	require.Nil(t, postponedUntil(short), "a day later")
}

// TestOrderChunkDeadlock checks that a deadlock counts as a chunk in use. A function that always fails replaces the one
// that rewrites a chunk.
func TestOrderChunkDeadlock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `CREATE OR REPLACE FUNCTION order_chunk(name text) RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'ended' USING ERRCODE = '40P01'; END $$`)
	require.ErrorIs(t, f.OrderChunk(t.Context(), "readings", timeLimit), ops.ErrChunkInUse)
}
