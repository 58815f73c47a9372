-- IdempotencyKeyClaim inserts the key of a request that is about to run. It waits for a concurrent request with the
-- same key, and returns no row if a response is stored already. A key that is older than 24 hours is overwritten (spec
-- 8).
-- name: IdempotencyKeyClaim :one
INSERT INTO idempotency_keys AS i (key_id, method, path, idempotency_key, body_sha256)
VALUES (@key_id, @method, @path, @idempotency_key, @body_sha256)
ON CONFLICT (key_id, method, path, idempotency_key) DO UPDATE
SET body_sha256 = excluded.body_sha256, response = '', created_at = now()
WHERE i.created_at < now() - INTERVAL '24 hours'
RETURNING created_at;

-- name: IdempotencyKeyGet :one
SELECT body_sha256, response FROM idempotency_keys
WHERE key_id = @key_id AND method = @method AND path = @path AND idempotency_key = @idempotency_key;

-- name: IdempotencyKeyStore :exec
UPDATE idempotency_keys SET response = @response
WHERE key_id = @key_id AND method = @method AND path = @path AND idempotency_key = @idempotency_key;

-- name: IdempotencyKeyPurge :execrows
DELETE FROM idempotency_keys WHERE created_at < now() - INTERVAL '24 hours';
