package fleet_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// respond runs a request with an Idempotency-Key that has a response of some bytes.
func (f *fixture) respond(t *testing.T, keyID, key string, size int) error {
	t.Helper()
	_, _, err := f.Idempotently(t.Context(), roomsensor.IdempotencyKey{KeyID: keyID, Method: "PATCH", Path: "/", Key: key},
		func(context.Context, roomsensor.DeviceUpdater) ([]byte, error) {
			return bytes.Repeat([]byte("x"), size), nil
		})
	return err
}

// TestIdempotencyBytes checks that a key, and a team with several keys, can store a limited number of bytes of large
// responses within a day. Small ones, replays and other keys are not affected.
func TestIdempotencyBytes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key, other := f.NewAPIKey(t), f.NewAPIKey(t)
	f.Exec(t, "INSERT INTO idempotency_bytes VALUES ($1, now() - INTERVAL '24 hours', 512 * 1024 * 1024 - 11000)", key)
	require.NoError(t, f.respond(t, key, "a", 5000))
	require.NoError(t, f.respond(t, key, "b", 6000))
	requireCode(t, f.respond(t, key, "c", 5000), roomsensor.CodeOverloaded)
	require.NoError(t, f.respond(t, key, "a", 5000))
	require.NoError(t, f.respond(t, key, "c", 4000))
	require.NoError(t, f.respond(t, other, "c", 5000))
	for range 3 {
		f.Exec(t, "INSERT INTO idempotency_bytes VALUES ($1, now() - INTERVAL '24 hours', 512 * 1024 * 1024 - 7000)", f.NewAPIKey(t))
	}
	require.NoError(t, f.respond(t, other, "d", 5000))
	requireCode(t, f.respond(t, other, "e", 20_000), roomsensor.CodeOverloaded)

	f.Exec(t, "UPDATE idempotency_bytes SET hour = hour - INTERVAL '2 hours'")
	require.NoError(t, f.respond(t, key, "d", 5000))
	f.Exec(t, "DELETE FROM idempotency_bytes")
	f.Exec(t, `INSERT INTO idempotency_bytes VALUES ($1, now() - INTERVAL '1499 minutes', 1),
		($2, now() - INTERVAL '1499 minutes', 1), ($1, now() - INTERVAL '1501 minutes', 1), ($1, now(), 1)`, key, other)
	_, err := f.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	var rows int
	require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT count(*) FROM idempotency_bytes").Scan(&rows))
	require.Equal(t, 3, rows)
}

// TestPurgeIdempotency checks that all old keys are deleted, in several statements, and by one process at a time.
func TestPurgeIdempotency(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO idempotency_keys (key_id, method, path, idempotency_key, body_sha256, created_at)
		SELECT $1, 'PATCH', '/', n::text, '', now() - n * INTERVAL '25 hours' FROM generate_series(0, 2500) n`, f.NewAPIKey(t))
	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(lock_key('idempotency_purge'))")
	require.NoError(t, err)
	purged, err := f.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.Zero(t, purged)

	require.NoError(t, tx.Rollback(t.Context()))
	purged, err = f.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2500, purged)
}
