-- name: APIKeyInsert :one
INSERT INTO api_keys (key_id, team_id, secret_sha256, scope, label, expires_at)
VALUES (@key_id, @team_id, @secret_sha256, @scope, @label, @expires_at)
RETURNING *;

-- name: APIKeyGet :many
SELECT * FROM api_keys WHERE key_id = ANY (@key_ids::text[]);

-- name: APIKeyList :many
SELECT * FROM api_keys WHERE team_id = @team_id ORDER BY created_at, key_id;

-- APIKeyRevoke keeps the time of the first revocation.
-- name: APIKeyRevoke :one
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id RETURNING *;
