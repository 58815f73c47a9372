-- RejectInsert inserts rejects. A message that is delivered again adds none, but locks the rejects that it made before
-- (WHERE false updates nothing). The lock makes the commit wait for the synchronous standby, as a write does. Without
-- it, the redelivery of a batch of rejects would be acknowledged although the standby may not have them yet: the commit
-- of the first delivery stays even if its wait for the standby is canceled.
-- name: RejectInsert :exec
INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, hardware_id, unit,
                              source_id, precision, payload)
SELECT unnest(@received_at::timestamptz[]), unnest(@stream_sequence::bigint[]), unnest(@reason::text[]),
       unnest(@detail::text[]), nullif(unnest(@team_id::uuid[]), '00000000-0000-0000-0000-000000000000'),
       nullif(unnest(@hardware_id::text[]), ''), nullif(unnest(@unit::text[]), ''),
       nullif(unnest(@source_id::uuid[]), '00000000-0000-0000-0000-000000000000'), unnest(@precision::text[]),
       unnest(@payload::bytea[])
ON CONFLICT (received_at, stream_sequence, reason, unit) DO UPDATE SET reason = excluded.reason WHERE false;

-- RejectList lists rejects without their payload, the newest first. A null filter matches all.
-- name: RejectList :many
SELECT id, received_at, team_id, hardware_id, unit, source_id, reason, detail, stream_sequence, replayed_at
FROM rejected_uploads
WHERE (sqlc.narg(team_id)::uuid IS NULL OR team_id = sqlc.narg(team_id))
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason))
  AND (sqlc.narg(hardware_id)::text IS NULL OR hardware_id = sqlc.narg(hardware_id))
  AND (sqlc.narg(unit)::text IS NULL OR unit = sqlc.narg(unit))
  AND (sqlc.narg(source_id)::uuid IS NULL OR source_id = sqlc.narg(source_id))
  AND (sqlc.narg(since)::timestamptz IS NULL OR received_at >= sqlc.narg(since))
ORDER BY received_at DESC, stream_sequence DESC, id
LIMIT @most::bigint;

-- RejectListByTeam lists the rejects of a team without their payload, the newest first, from a position on and back to a
-- time. A null filter matches all. The expressions are those of rejected_uploads_team_idx; the condition on team_id follows from the first.
-- name: RejectListByTeam :many
SELECT id, received_at, hardware_id, unit, reason, detail, replayed_at
FROM rejected_uploads
WHERE team_id = @team_id::uuid AND reject_team(team_id) = @team_id
  AND (received_at AT TIME ZONE 'UTC', id) < (timezone('UTC', @before_at::timestamptz), @before_id::uuid)
  AND received_at AT TIME ZONE 'UTC' >= timezone('UTC', @since::timestamptz)
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason))
  AND (sqlc.narg(hardware_id)::text IS NULL OR hardware_id = sqlc.narg(hardware_id))
  AND (sqlc.narg(unit)::text IS NULL OR unit = sqlc.narg(unit))
  AND (sqlc.narg(source_id)::uuid IS NULL OR source_id = sqlc.narg(source_id))
ORDER BY received_at AT TIME ZONE 'UTC' DESC, id DESC
LIMIT @most::bigint;

-- RejectGroupList counts the rejects of a team by reason and unit, those with the newest reject first. A null filter
-- matches all.
-- name: RejectGroupList :many
SELECT reason, unit, count(*) AS total, count(replayed_at) AS replayed,
    min(received_at)::timestamptz AS first_at, max(received_at)::timestamptz AS last_at
FROM rejected_uploads
WHERE team_id = @team_id::uuid
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason))
  AND (sqlc.narg(unit)::text IS NULL OR unit = sqlc.narg(unit))
  AND (sqlc.narg(source_id)::uuid IS NULL OR source_id = sqlc.narg(source_id))
GROUP BY reason, unit
ORDER BY last_at DESC, reason, unit
LIMIT @most::bigint OFFSET @skipped::bigint;

-- RejectGroupPage lists the positions of the rejects of a group after a position, the oldest first. A group has some
-- reasons and, where they are not null, a unit and a source.
-- name: RejectGroupPage :many
SELECT received_at, id FROM rejected_uploads
WHERE team_id = @team_id::uuid AND reason = ANY (@reasons::text[])
  AND (sqlc.narg(unit)::text IS NULL OR unit = sqlc.narg(unit))
  AND (sqlc.narg(source_id)::uuid IS NULL OR source_id = sqlc.narg(source_id))
  AND (received_at, id) > (@after_at::timestamptz, @after_id::uuid)
ORDER BY received_at, id
LIMIT @most::bigint;

-- RejectGroupCount counts the rejects of a group after a position.
-- name: RejectGroupCount :one
SELECT count(*) FROM rejected_uploads
WHERE team_id = @team_id::uuid AND reason = ANY (@reasons::text[])
  AND (sqlc.narg(unit)::text IS NULL OR unit = sqlc.narg(unit))
  AND (sqlc.narg(source_id)::uuid IS NULL OR source_id = sqlc.narg(source_id))
  AND (received_at, id) > (@after_at::timestamptz, @after_id::uuid);

-- name: RejectGetByTeam :one
SELECT * FROM rejected_uploads WHERE id = @reject_id AND team_id = @team_id::uuid;

-- name: RejectGet :one
SELECT * FROM rejected_uploads WHERE id = @reject_id;

-- RejectGetByMessage returns the reject of a message for a reason.
-- name: RejectGetByMessage :one
SELECT * FROM rejected_uploads
WHERE received_at = @received_at AND stream_sequence = @stream_sequence AND reason = @reason
  AND unit IS NOT DISTINCT FROM sqlc.narg(unit);

-- name: RejectMarkReplayed :exec
UPDATE rejected_uploads SET replayed_at = now() WHERE id = @reject_id;

-- RejectTrimLock reports whether this transaction may delete rejects: only one at a time does, because several workers
-- would delete the same ones.
-- name: RejectTrimLock :one
SELECT pg_try_advisory_xact_lock(lock_key('reject_trim'));

-- RejectTrimAge deletes at most @most rejects that were made more than keep_seconds ago. Uploads may have waited in the
-- queue before they were rejected. The condition on received_at is implied, and lets the query use its index.
-- name: RejectTrimAge :execrows
DELETE FROM rejected_uploads WHERE id IN (
    SELECT id FROM rejected_uploads
    WHERE received_at < now() - make_interval(secs => @keep_seconds::double precision)
      AND rejected_at < now() - make_interval(secs => @keep_seconds::double precision)
    LIMIT @most::bigint
);

-- RejectTrimTeam deletes the oldest rejects of a team (reject_team) until excess_bytes are free, at most @most of them.
-- The array makes it find them by primary key, also without statistics.
-- name: RejectTrimTeam :execrows
WITH oldest AS (
    SELECT id, sum(size) OVER (ORDER BY received_at, id) - size AS freed_before
    FROM (
        SELECT id, received_at, reject_bytes(payload, detail) AS size FROM rejected_uploads
        WHERE reject_team(team_id) = @team_id::uuid
        ORDER BY received_at AT TIME ZONE 'UTC', id
        LIMIT @most::bigint
    ) r
)
DELETE FROM rejected_uploads
WHERE id = ANY (ARRAY(SELECT id FROM oldest WHERE freed_before < @excess_bytes::bigint));

-- RejectDeleteByTeam deletes the oldest rejects of a team, at most @most of them. The array makes it find them by primary
-- key, also without statistics.
-- name: RejectDeleteByTeam :execrows
DELETE FROM rejected_uploads WHERE id = ANY (ARRAY(
    SELECT id FROM rejected_uploads
    WHERE reject_team(team_id) = @team_id::uuid
    ORDER BY received_at, stream_sequence
    LIMIT @most::bigint
));

-- RejectCountByReason counts the rejects of all teams with a reason.
-- name: RejectCountByReason :one
SELECT count(*) FROM rejected_uploads WHERE reason = @reason;

-- RejectUsageGet returns the number of rejects of a team.
-- name: RejectUsageGet :one
SELECT coalesce(sum(rejects), 0)::bigint AS rejects FROM reject_usage WHERE team_id = @team_id;

-- RejectUsageList returns the number and size of the rejects of each team (reject_team), the largest first.
-- name: RejectUsageList :many
SELECT team_id, rejects, bytes FROM reject_usage WHERE rejects > 0 ORDER BY bytes DESC, team_id;
