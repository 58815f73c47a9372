-- StreamGet returns the creation time of the stream whose uploads the tables contain.
-- name: StreamGet :one
SELECT created_at FROM streams WHERE name = @name;

-- StreamInsert records the first stream. A stream that is recorded already stays.
-- name: StreamInsert :exec
INSERT INTO streams (name, created_at) VALUES (@name, @created_at) ON CONFLICT DO NOTHING;

-- StreamReplace records another stream, as an operator confirmed it.
-- name: StreamReplace :exec
INSERT INTO streams (name, created_at) VALUES (@name, @created_at)
ON CONFLICT (name) DO UPDATE SET created_at = excluded.created_at;
