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

-- IdempotencyBytesAdd counts the bytes of a response that is being stored, and returns the bytes of the key, and of all
-- keys of its team, in the last 25 hours.
-- name: IdempotencyBytesAdd :one
WITH added AS (
    INSERT INTO idempotency_bytes AS b (key_id, hour, bytes)
    VALUES (@key_id, date_trunc('hour', now()), @bytes)
    ON CONFLICT (key_id, hour) DO UPDATE SET bytes = b.bytes + excluded.bytes
    RETURNING b.bytes
)
SELECT ((SELECT added.bytes FROM added) + coalesce(sum(p.bytes) FILTER (WHERE p.key_id = @key_id), 0))::bigint AS of_key,
       ((SELECT added.bytes FROM added) + coalesce(sum(p.bytes), 0))::bigint AS of_team
FROM api_keys own JOIN api_keys k ON k.team_id = own.team_id JOIN idempotency_bytes p ON p.key_id = k.key_id
WHERE own.key_id = @key_id AND p.hour >= now() - INTERVAL '25 hours'
  AND (p.hour < date_trunc('hour', now()) OR p.key_id <> @key_id);

-- name: IdempotencyBytesPurge :exec
DELETE FROM idempotency_bytes WHERE hour < now() - INTERVAL '25 hours';

-- IdempotencyKeyDelete deletes the stored responses of an API key, at most @most of them, for the deletion of a team.
-- name: IdempotencyKeyDelete :execrows
DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT i.ctid FROM idempotency_keys i WHERE i.key_id = @key_id LIMIT @most::bigint));

-- IdempotencyKeyPurge deletes at most most_keys keys that are older than 24 hours, and returns their number. It deletes
-- nothing while another process runs it, and passes over a key that a request is overwriting.
-- name: IdempotencyKeyPurge :execrows
DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_keys
    WHERE created_at < now() - INTERVAL '24 hours' AND (SELECT pg_try_advisory_xact_lock(lock_key('idempotency_purge')))
    ORDER BY created_at LIMIT @most_keys::integer
    FOR UPDATE SKIP LOCKED));
