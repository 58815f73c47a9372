-- name: APIKeyInsert :one
INSERT INTO api_keys (key_id, team_id, secret_sha256, scope, label, expires_at, made_by)
VALUES (@key_id, @team_id, @secret_sha256, @scope, @label, @expires_at, sqlc.narg(made_by))
RETURNING *;

-- name: APIKeyGet :many
SELECT * FROM api_keys WHERE key_id = ANY (@key_ids::text[]);

-- APIKeyList lists the keys of a team with their last use, if they were used, and the person who made each.
-- name: APIKeyList :many
SELECT sqlc.embed(k), u.used_at, u.client, maker.email AS made_by, (k.made_by IS NOT NULL AND NOT EXISTS (
    SELECT FROM memberships m WHERE m.team_id = k.team_id AND m.user_id = k.made_by))::boolean AS maker_left
FROM api_keys k
LEFT JOIN api_key_uses u ON u.key_id = k.key_id
LEFT JOIN users maker ON maker.id = k.made_by
WHERE k.team_id = @team_id ORDER BY k.created_at, k.key_id;

-- name: APIKeyLock :one
SELECT * FROM api_keys WHERE key_id = @key_id AND team_id = @team_id FOR NO KEY UPDATE;

-- APIKeyExpire lets a valid key expire after a time, unless it expires before that. It returns nothing for a key that
-- is not valid.
-- name: APIKeyExpire :one
UPDATE api_keys SET expires_at = least(expires_at, now() + make_interval(secs => @overlap_seconds::double precision))
WHERE key_id = @key_id AND team_id = @team_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- APIKeyDelete deletes a key without stored responses, with what is counted of its requests.
-- name: APIKeyDelete :exec
WITH bytes AS (DELETE FROM idempotency_bytes WHERE idempotency_bytes.key_id = @key_id),
     windows AS (DELETE FROM rate_windows WHERE rate_windows.key_id = @key_id),
     counters AS (DELETE FROM rate_counters WHERE rate_counters.key_id = @key_id)
DELETE FROM api_keys WHERE api_keys.key_id = @key_id;

-- APIKeyRevoke keeps the time of the first revocation.
-- name: APIKeyRevoke :one
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = @key_id AND team_id = @team_id
RETURNING *;

-- APIKeyUseUpsert stores the last uses of some API keys, at most one per key and minute, whichever process writes it. It
-- passes over keys that were deleted. The keys must be distinct; they are locked in the order of their ids.
-- name: APIKeyUseUpsert :exec
INSERT INTO api_key_uses AS u (key_id, used_at, client)
SELECT k.key_id, n.used_at, nullif(n.client, '')
FROM (SELECT unnest(@key_ids::text[]) AS key_id, unnest(@used_at::timestamptz[]) AS used_at,
             unnest(@clients::text[]) AS client) n
JOIN api_keys k ON k.key_id = n.key_id
ORDER BY k.key_id
ON CONFLICT (key_id) DO UPDATE SET used_at = excluded.used_at, client = excluded.client
WHERE date_trunc('minute', u.used_at) < date_trunc('minute', excluded.used_at);

-- APIKeyCountExpiring counts the valid keys that expire before a time, unless their team has a newer one that is valid
-- for longer, as after a rotation.
-- name: APIKeyCountExpiring :one
SELECT count(*) FROM api_keys k
WHERE revoked_at IS NULL AND expires_at > now() AND expires_at < @before::timestamptz
  AND NOT EXISTS (
      SELECT FROM api_keys n
      WHERE n.team_id = k.team_id AND n.created_at > k.created_at AND n.revoked_at IS NULL
        AND (n.expires_at IS NULL OR n.expires_at > k.expires_at));
