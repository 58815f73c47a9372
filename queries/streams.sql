-- StreamGet returns the creation time of the stream whose uploads the tables contain.
-- name: StreamGet :one
SELECT created_at FROM streams WHERE name = @name;

-- StreamInsert records the first stream. A stream that is recorded already stays.
-- name: StreamInsert :exec
INSERT INTO streams (name, created_at) VALUES (@name, @created_at) ON CONFLICT DO NOTHING;

-- StreamReplace records another stream, as an operator confirmed it. The shares are those of the one before.
-- name: StreamReplace :exec
WITH gone AS (
    DELETE FROM stream_shares
    WHERE NOT EXISTS (SELECT FROM streams s WHERE s.name = @name AND s.created_at = @created_at)
)
INSERT INTO streams (name, created_at) VALUES (@name, @created_at)
ON CONFLICT (name) DO UPDATE SET created_at = excluded.created_at;

-- StreamShareInsert records shares of the stream. An upload that is delivered again is one already.
-- name: StreamShareInsert :exec
INSERT INTO stream_shares (stream_sequence, team_id, bytes)
SELECT unnest(@stream_sequences::bigint[]), unnest(@team_ids::uuid[]), unnest(@bytes::bigint[])
ON CONFLICT DO NOTHING;

-- StreamShareList lists all shares.
-- name: StreamShareList :many
SELECT stream_sequence, team_id, bytes FROM stream_shares ORDER BY stream_sequence;

-- StreamShareDelete deletes the shares of uploads that the stream has no more: those below its first sequence, and of each
-- team those below a sequence.
-- name: StreamShareDelete :exec
DELETE FROM stream_shares s
WHERE s.stream_sequence < @first_sequence::bigint
   OR EXISTS (
       SELECT FROM (SELECT unnest(@team_ids::uuid[]) AS team_id, unnest(@before::bigint[]) AS before_sequence) c
       WHERE c.team_id = s.team_id AND s.stream_sequence < c.before_sequence
   );
