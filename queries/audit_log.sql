-- AuditList lists the entries of one team or of all, the newest first. A null filter matches all. actor and object match
-- ignoring case: actor the whole text; object an id, a device, or a part of a name.
-- name: AuditList :many
SELECT * FROM audit_log
WHERE (sqlc.narg(of_team)::uuid IS NULL OR team_id = sqlc.narg(of_team))
  AND (sqlc.narg(since)::timestamptz IS NULL OR at >= sqlc.narg(since))
  AND (sqlc.narg(actor)::text IS NULL OR lower(actor) = lower(sqlc.narg(actor)))
  AND (sqlc.narg(object)::text IS NULL OR object_id = lower(sqlc.narg(object)) OR device_id::text = lower(sqlc.narg(object))
       OR strpos(lower(object_name), lower(sqlc.narg(object))) > 0)
ORDER BY at DESC, id DESC
LIMIT @most::bigint;

-- AuditListByTeam lists a page of the entries of a team, the newest first, from a position on and back to a time. An
-- empty actor or object matches all; otherwise it is an id, a device, or a part of a name, ignoring case.
-- name: AuditListByTeam :many
SELECT * FROM audit_log
WHERE team_id = @team_id::uuid AND (at, id) < (@before_at::timestamptz, @before_id::uuid) AND at >= @since::timestamptz
  AND (@actor::text = '' OR strpos(lower(actor), lower(@actor)) > 0)
  AND (@object::text = '' OR object_id = lower(@object) OR device_id::text = lower(@object)
       OR strpos(lower(object_name), lower(@object)) > 0 OR strpos(lower(device_name), lower(@object)) > 0)
ORDER BY at DESC, id DESC
LIMIT @most::bigint;

-- AuditCountRecent counts the changes of a person and those of all people in a team in the last 24 hours, up to @most of
-- each, without replays of rejects.
-- name: AuditCountRecent :one
SELECT (SELECT count(*) FROM (
           SELECT FROM audit_log l
           WHERE l.user_id = @user_id::uuid AND l.actor_kind = 'person' AND l.object_kind <> 'reject'
             AND l.at BETWEEN now() - INTERVAL '24 hours' AND now() LIMIT @most::bigint) p) AS of_person,
       (SELECT count(*) FROM (
           SELECT FROM audit_log l
           WHERE l.team_id = sqlc.narg(team_id)::uuid AND l.actor_kind = 'person' AND l.object_kind <> 'reject'
             AND l.at BETWEEN now() - INTERVAL '24 hours' AND now() LIMIT @most::bigint) t) AS of_team;

-- AuditExpire deletes at most @most entries that are older than keep_seconds, and returns their number.
-- name: AuditExpire :one
SELECT audit_expire(make_interval(secs => @keep_seconds::double precision), @most::integer);

-- AuditTrim deletes at most @most entries with which the API keys of a team exceed their limit, and returns their number.
-- name: AuditTrim :one
SELECT audit_trim(@of_team::uuid, @most::integer);
