-- name: IngestKeyInsert :one
INSERT INTO ingest_keys (key_id, team_id, secret_sha256, label, expires_at)
VALUES (@key_id, @team_id, @secret_sha256, @label, @expires_at)
RETURNING *;

-- name: IngestKeyList :many
SELECT * FROM ingest_keys WHERE team_id = @team_id ORDER BY created_at, key_id;

-- IngestKeyListAfter lists a page of the keys of all teams for the receiver, which keeps them in memory.
-- name: IngestKeyListAfter :many
SELECT * FROM ingest_keys WHERE key_id > @after ORDER BY key_id LIMIT @most;

-- IngestKeyGet finds keys that the receiver does not know yet.
-- name: IngestKeyGet :many
SELECT * FROM ingest_keys WHERE key_id = ANY (@key_ids::text[]);

-- IngestKeyPosition returns the oldest transaction that runs, and the start of the server: the numbers of transactions
-- of two servers cannot be compared. Every change that no query has seen so far is at or above that transaction.
-- name: IngestKeyPosition :one
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_running,
    pg_postmaster_start_time()::timestamptz AS server_started;

-- IngestKeyListChanged lists the keys that were inserted or updated by a transaction or a later one. It leaves out the
-- numbers of future transactions, which a table that was restored from another server can contain.
-- name: IngestKeyListChanged :many
SELECT * FROM ingest_keys
WHERE changed_in >= @since AND changed_in < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
LIMIT @most;

-- name: IngestKeyLock :one
SELECT * FROM ingest_keys WHERE key_id = @key_id FOR NO KEY UPDATE;

-- IngestKeyExpire lets a valid key expire after a time, unless it expires before that. It returns nothing for a key
-- that is not valid.
-- name: IngestKeyExpire :one
UPDATE ingest_keys SET expires_at = least(expires_at, now() + make_interval(secs => @overlap_seconds::double precision))
WHERE key_id = @key_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: IngestKeyRevokeByTeam :exec
UPDATE ingest_keys SET revoked_at = now() WHERE team_id = @team_id AND revoked_at IS NULL;

-- name: IngestKeyDeleteByTeam :execrows
DELETE FROM ingest_keys WHERE team_id = @team_id;

-- IngestKeyRevoke keeps the time of the first revocation.
-- name: IngestKeyRevoke :one
UPDATE ingest_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id RETURNING *;
