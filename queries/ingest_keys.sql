-- name: IngestKeyInsert :one
INSERT INTO ingest_keys (key_id, team_id, secret_sha256, label)
VALUES (@key_id, @team_id, @secret_sha256, @label)
RETURNING *;

-- name: IngestKeyList :many
SELECT * FROM ingest_keys WHERE team_id = @team_id ORDER BY created_at, key_id;

-- IngestKeyListAll lists the keys of all teams for the receiver, which caches them.
-- name: IngestKeyListAll :many
SELECT * FROM ingest_keys;

-- IngestKeyRevoke keeps the time of the first revocation.
-- name: IngestKeyRevoke :one
UPDATE ingest_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id RETURNING *;
