-- name: SessionGet :one
SELECT data FROM sessions WHERE token_hash = @token_hash AND expires_at > now();

-- SessionPut stores a session. It does not store one again that ended, and writes nothing if only its expiry moved by
-- less than a minute: otherwise, each request would write.
-- name: SessionPut :exec
INSERT INTO sessions (token_hash, data, expires_at) VALUES (@token_hash, @data, @expires_at)
ON CONFLICT (token_hash) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at
WHERE sessions.expires_at > now()
    AND (sessions.data <> excluded.data OR sessions.expires_at < excluded.expires_at - INTERVAL '1 minute');

-- SessionEnd keeps the row until it is purged, so that a concurrent request cannot store the session again.
-- name: SessionEnd :exec
UPDATE sessions SET data = '', expires_at = now() WHERE token_hash = @token_hash AND expires_at > now();

-- SessionPurge keeps ended sessions for longer than any request that could store them again.
-- name: SessionPurge :execrows
DELETE FROM sessions WHERE expires_at < now() - INTERVAL '1 hour';
