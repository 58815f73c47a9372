package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// interleave stores readings of two devices as they arrive: by time.
func (f *fixture) interleave(t *testing.T, from string, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT id, $1::timestamptz + i * INTERVAL '5 minutes', i FROM generate_series(0, $2 - 1) i, devices`, from, n)
}

// toOrder lists the chunks that stopped changing, once the statistics know what
// was just written.
func (f *fixture) toOrder(t *testing.T, want int) []roomsensor.Chunk {
	t.Helper()
	var chunks []roomsensor.Chunk
	require.Eventually(t, func() bool {
		f.exec(t, "SELECT pg_stat_force_next_flush()")
		var err error
		chunks, err = f.ChunksToOrder(t.Context(), at("2026-03-01T00:00:00Z"))
		require.NoError(t, err)
		return len(chunks) == want
	}, 30*time.Second, 20*time.Millisecond)
	return chunks
}

// turns counts how often the device changes from a row on disk to the next.
func (f *fixture) turns(t *testing.T, chunk string) (n int) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `
		SELECT count(*) FROM (SELECT device_id, lag(device_id) OVER (ORDER BY ctid) AS before FROM `+chunk+`) r
		WHERE device_id <> before`).Scan(&n))
	return n
}

// A chunk that stopped changing is put in the order of its key once, and once
// more after a late burst into it; what it holds stays the same.
func TestChunksArePutInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.newDevice(t, "dev:2")
	f.interleave(t, "2026-01-08T00:00:00Z", 1000) // Two chunks at most, of any time zone.
	f.interleave(t, "2026-03-05T00:00:00Z", 10)   // In one that may change still.
	before := f.readAll(t, f.device)
	chunks, err := f.ChunksToOrder(t.Context(), at("2026-03-01T00:00:00Z"))
	require.NoError(t, err)
	chunks = f.toOrder(t, max(1, len(chunks)))
	for _, chunk := range chunks {
		require.False(t, chunk.Range.To.After(at("2026-03-01T00:00:00Z")))
		require.Positive(t, chunk.Bytes)
		require.Greater(t, f.turns(t, chunk.Name), 10)
		ordered, err := f.OrderChunk(t.Context(), chunk.Name)
		require.NoError(t, err)
		require.True(t, ordered)
		require.Equal(t, 1, f.turns(t, chunk.Name))
	}
	f.toOrder(t, 0)
	require.Equal(t, before, f.readAll(t, f.device))

	f.write(t, co2(f.device, "2026-01-08T00:02:00Z", 7))
	f.toOrder(t, 0)
	f.exec(t, "UPDATE readings SET co2_ppm = 8 WHERE bucket_at BETWEEN '2026-01-08' AND '2026-01-09'")
	chunk := f.toOrder(t, 1)[0]
	ordered, err := f.OrderChunk(t.Context(), chunk.Name)
	require.NoError(t, err)
	require.True(t, ordered)
	f.toOrder(t, 0)
}

// While a chunk is locked for its rewrite, the snapshot, pages and exports of
// newer readings go on; only one process is at it; and a chunk in use is left.
func TestOrderingAChunkStopsNobody(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-03-05T00:30:00Z")
	f.interleave(t, "2026-01-08T00:00:00Z", 100)
	f.interleave(t, "2026-03-05T00:00:00Z", 6)
	chunk := f.toOrder(t, 1)[0]

	tx, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "SELECT order_chunk($1)", chunk.Name)
	require.NoError(t, err)

	current, err := f.CurrentDevices(t.Context(), f.team, roomsensor.DeviceQuery{Limit: 10}, roomsensor.SummaryWindow(now))
	require.NoError(t, err)
	require.Equal(t, at("2026-03-05T00:25:00Z"), current[0].Latest.BucketAt)
	require.Len(t, f.readings(t, f.team, f.device, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: now.Add(-time.Hour), To: now}, Limit: 10,
	}), 6)
	ordered, err := f.OrderChunk(t.Context(), chunk.Name)
	require.NoError(t, err)
	require.False(t, ordered, "another process is at it")
	require.NoError(t, tx.Rollback(t.Context()))

	reader, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = reader.Rollback(context.Background()) }()
	_, err = reader.Exec(t.Context(), "LOCK TABLE "+chunk.Name+" IN ACCESS SHARE MODE")
	require.NoError(t, err)
	_, err = f.OrderChunk(t.Context(), chunk.Name)
	var busy *roomsensor.Error
	require.ErrorAs(t, err, &busy, "a reader is not stopped")
	require.NoError(t, reader.Rollback(t.Context()))
	ordered, err = f.OrderChunk(t.Context(), chunk.Name)
	require.NoError(t, err)
	require.True(t, ordered)
}

// The newest reading is found however long a device was silent.
func TestLatestOfASilentDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	recent, silent := f.device, f.newDevice(t, "dev:2")
	f.write(t, co2(recent, "2026-03-05T00:00:00Z", 1), co2(silent, "2019-03-05T00:00:00Z", 2))
	f.write(t, co2(recent, "2026-03-04T00:00:00Z", 3), co2(silent, "2018-03-05T00:00:00Z", 4))
	current, err := f.CurrentDevices(t.Context(), f.team, roomsensor.DeviceQuery{Limit: 10},
		roomsensor.SummaryWindow(at("2026-03-05T00:30:00Z")))
	require.NoError(t, err)
	got := map[string]string{}
	for _, d := range current {
		got[d.HardwareID] = roomsensor.FormatTime(d.Latest.BucketAt)
	}
	require.Equal(t, map[string]string{"dev:1": "2026-03-05T00:00:00Z", "dev:2": "2019-03-05T00:00:00Z"}, got)
}
