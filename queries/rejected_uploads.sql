-- RejectInsert makes no second reject of a message that was delivered again.
-- name: RejectInsert :exec
INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, hardware_id, payload)
SELECT unnest(@received_at::timestamptz[]), unnest(@stream_sequence::bigint[]), unnest(@reason::text[]),
       unnest(@detail::text[]), nullif(unnest(@team_id::uuid[]), '00000000-0000-0000-0000-000000000000'),
       nullif(unnest(@hardware_id::text[]), ''), unnest(@payload::bytea[])
ON CONFLICT (received_at, stream_sequence, reason) DO NOTHING;

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

-- name: RejectMarkReplayed :exec
UPDATE rejected_uploads SET replayed_at = now() WHERE id = @reject_id;
