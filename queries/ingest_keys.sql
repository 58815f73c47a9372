-- name: IngestKeyInsert :one
INSERT INTO ingest_keys (key_id, team_id, secret_sha256, label, expires_at, made_by, source_id)
VALUES (@key_id, @team_id, @secret_sha256, @label, @expires_at, sqlc.narg(made_by), sqlc.narg(source_id))
RETURNING *;

-- IngestKeyList lists the keys of a team with their last use, if they were used, and the person who made each.
-- name: IngestKeyList :many
SELECT sqlc.embed(k), u.used_at, u.client, maker.email AS made_by, (k.made_by IS NOT NULL AND NOT EXISTS (
    SELECT FROM memberships m WHERE m.team_id = k.team_id AND m.user_id = k.made_by))::boolean AS maker_left
FROM ingest_keys k
LEFT JOIN ingest_key_uses u ON u.key_id = k.key_id
LEFT JOIN users maker ON maker.id = k.made_by
WHERE k.team_id = @team_id ORDER BY k.created_at, k.key_id;

-- The receiver reads keys with the format of their source, which is null for a key of uploads, and if the source is missing
-- or disabled.

-- IngestKeyListAfter lists a page of the keys of all teams for the receiver, which keeps them in memory.
-- name: IngestKeyListAfter :many
SELECT sqlc.embed(k), s.format FROM ingest_keys k LEFT JOIN sources s ON s.id = k.source_id AND s.disabled_at IS NULL
WHERE k.key_id > @after ORDER BY k.key_id LIMIT @most;

-- IngestKeyGet finds keys that the receiver does not know yet.
-- name: IngestKeyGet :many
SELECT sqlc.embed(k), s.format FROM ingest_keys k LEFT JOIN sources s ON s.id = k.source_id AND s.disabled_at IS NULL
WHERE k.key_id = ANY (@key_ids::text[]);

-- IngestKeyPosition returns the oldest transaction that runs, and the start of the server: the numbers of transactions
-- of two servers cannot be compared. Every change that no query has seen so far is at or above that transaction.
-- name: IngestKeyPosition :one
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_running,
    pg_postmaster_start_time()::timestamptz AS server_started;

-- IngestKeyListChanged lists the keys that were inserted or updated by a transaction or a later one. It leaves out the
-- numbers of future transactions, which a table that was restored from another server can contain.
-- name: IngestKeyListChanged :many
SELECT sqlc.embed(k), s.format FROM ingest_keys k LEFT JOIN sources s ON s.id = k.source_id AND s.disabled_at IS NULL
WHERE k.changed_in >= @since AND k.changed_in < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
LIMIT @most;

-- name: IngestKeyLock :one
SELECT * FROM ingest_keys WHERE key_id = @key_id AND team_id = @team_id FOR NO KEY UPDATE;

-- IngestKeyExpire lets a valid key expire after a time, unless it expires before that. It returns nothing for a key
-- that is not valid.
-- name: IngestKeyExpire :one
UPDATE ingest_keys SET expires_at = least(expires_at, now() + make_interval(secs => @overlap_seconds::double precision))
WHERE key_id = @key_id AND team_id = @team_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: IngestKeyDeleteByTeam :execrows
DELETE FROM ingest_keys WHERE team_id = @team_id;

-- IngestKeyRevoke keeps the time of the first revocation.
-- name: IngestKeyRevoke :one
UPDATE ingest_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id AND team_id = @team_id
RETURNING *;

-- IngestKeyUseUpsert is APIKeyUseUpsert for ingest keys.
-- name: IngestKeyUseUpsert :exec
INSERT INTO ingest_key_uses AS u (key_id, used_at, client)
SELECT k.key_id, n.used_at, nullif(n.client, '')
FROM (SELECT unnest(@key_ids::text[]) AS key_id, unnest(@used_at::timestamptz[]) AS used_at,
             unnest(@clients::text[]) AS client) n
JOIN ingest_keys k ON k.key_id = n.key_id
ORDER BY k.key_id
ON CONFLICT (key_id) DO UPDATE SET used_at = excluded.used_at, client = excluded.client
WHERE date_trunc('minute', u.used_at) < date_trunc('minute', excluded.used_at);

-- IngestKeyCountExpiring counts the valid keys that expire before a time, unless their team has a newer one that is valid
-- for longer, as after a rotation.
-- name: IngestKeyCountExpiring :one
SELECT count(*) FROM ingest_keys k
WHERE revoked_at IS NULL AND expires_at > now() AND expires_at < @before::timestamptz
  AND NOT EXISTS (
      SELECT FROM ingest_keys n
      WHERE n.team_id = k.team_id AND n.created_at > k.created_at AND n.revoked_at IS NULL
        AND (n.expires_at IS NULL OR n.expires_at > k.expires_at));
