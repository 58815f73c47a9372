-- RejectInsert inserts rejects. A message that is delivered again adds none.
-- name: RejectInsert :exec
INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, hardware_id, payload)
SELECT unnest(@received_at::timestamptz[]), unnest(@stream_sequence::bigint[]), unnest(@reason::text[]),
       unnest(@detail::text[]), nullif(unnest(@team_id::uuid[]), '00000000-0000-0000-0000-000000000000'),
       nullif(unnest(@hardware_id::text[]), ''), unnest(@payload::bytea[])
ON CONFLICT (received_at, stream_sequence, reason) DO NOTHING;

-- RejectList lists rejects without their payload, the newest first. A null filter matches all.
-- name: RejectList :many
SELECT id, received_at, team_id, hardware_id, reason, detail, stream_sequence, replayed_at
FROM rejected_uploads
WHERE (sqlc.narg(team_id)::uuid IS NULL OR team_id = sqlc.narg(team_id))
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason))
  AND (sqlc.narg(hardware_id)::text IS NULL OR hardware_id = sqlc.narg(hardware_id))
  AND (sqlc.narg(since)::timestamptz IS NULL OR received_at >= sqlc.narg(since))
ORDER BY received_at DESC, stream_sequence DESC, id
LIMIT @most::bigint;

-- name: RejectGet :one
SELECT * FROM rejected_uploads WHERE id = @reject_id;

-- RejectGetByMessage returns the reject of a message for a reason.
-- name: RejectGetByMessage :one
SELECT * FROM rejected_uploads
WHERE received_at = @received_at AND stream_sequence = @stream_sequence AND reason = @reason;

-- name: RejectMarkReplayed :exec
UPDATE rejected_uploads SET replayed_at = now() WHERE id = @reject_id;

-- RejectTrimAge deletes rejects that were made more than keep_seconds ago. Uploads may have waited in the queue before
-- they were rejected. The condition on received_at is implied, and lets the query use its index.
-- name: RejectTrimAge :execrows
DELETE FROM rejected_uploads
WHERE received_at < now() - make_interval(secs => @keep_seconds::double precision)
  AND rejected_at < now() - make_interval(secs => @keep_seconds::double precision);

-- RejectTrimSize deletes the oldest rejects that exceed most_bytes in total, once the table is larger than that on
-- disk. It estimates 300 bytes per row besides payload and detail.
-- name: RejectTrimSize :execrows
WITH sized AS (
    SELECT id, sum(octet_length(payload) + octet_length(detail) + 300)
                   OVER (ORDER BY received_at DESC, stream_sequence DESC, id) AS size_to_here
    FROM rejected_uploads
    WHERE (SELECT pg_total_relation_size('rejected_uploads')) > @most_bytes::bigint
)
DELETE FROM rejected_uploads r USING sized
WHERE r.id = sized.id AND sized.size_to_here > @most_bytes::bigint;

-- RejectCount returns the number of rejects and the size of their table on disk. Deleted rows free space for new ones,
-- not for other tables.
-- name: RejectCount :one
SELECT count(*) AS kept, pg_total_relation_size('rejected_uploads') AS bytes FROM rejected_uploads;
