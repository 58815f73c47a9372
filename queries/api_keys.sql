-- name: APIKeyInsert :one
INSERT INTO api_keys (key_id, team_id, secret_sha256, scope, label, expires_at)
VALUES (@key_id, @team_id, @secret_sha256, @scope, @label, @expires_at)
RETURNING *;

-- name: APIKeyGet :many
SELECT * FROM api_keys WHERE key_id = ANY (@key_ids::text[]);

-- name: APIKeyList :many
SELECT * FROM api_keys WHERE team_id = @team_id ORDER BY created_at, key_id;

-- name: APIKeyLock :one
SELECT * FROM api_keys WHERE key_id = @key_id FOR NO KEY UPDATE;

-- APIKeyExpire lets a valid key expire after a time, unless it expires before that. It returns nothing for a key that
-- is not valid.
-- name: APIKeyExpire :one
UPDATE api_keys SET expires_at = least(expires_at, now() + make_interval(secs => @overlap_seconds::double precision))
WHERE key_id = @key_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: APIKeyRevokeByTeam :exec
UPDATE api_keys SET revoked_at = now() WHERE team_id = @team_id AND revoked_at IS NULL;

-- name: APIKeyDelete :exec
DELETE FROM api_keys WHERE key_id = @key_id;

-- APIKeyRevoke keeps the time of the first revocation.
-- name: APIKeyRevoke :one
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id RETURNING *;
