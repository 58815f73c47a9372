-- name: TeamInsert :one
INSERT INTO teams (name) VALUES (@name) RETURNING id, name;

-- TeamSettingsGet reads what the people of a team configure.
-- name: TeamSettingsGet :one
SELECT * FROM teams WHERE id = @team_id;

-- TeamSettingsLock is TeamSettingsGet, and lets other changes of the team wait.
-- name: TeamSettingsLock :one
SELECT * FROM teams WHERE id = @team_id FOR NO KEY UPDATE;

-- TeamSettingsUpdate changes what the people of a team configure.
-- name: TeamSettingsUpdate :exec
UPDATE teams
SET name = @name, time_zone = @time_zone, night_start = @night_start, night_end = @night_end, limits = @limits,
    alert_silent = @alert_silent, alert_bad = @alert_bad, alert_bad_at_night = @alert_bad_at_night, alert_coverage = @alert_coverage,
    alert_rejects = @alert_rejects, mail_at = @mail_at, mail_weekday = @mail_weekday
WHERE id = @team_id;

-- TeamSetRetention changes for how many days the readings of a team are kept.
-- name: TeamSetRetention :execrows
UPDATE teams SET keep_days = sqlc.narg(keep_days) WHERE id = @team_id;

-- TeamRename changes the name of a team.
-- name: TeamRename :one
UPDATE teams SET name = @name WHERE id = @team_id RETURNING id, name;

-- TeamRevoke revokes all keys of a team.
-- name: TeamRevoke :exec
WITH ingest AS (UPDATE ingest_keys SET revoked_at = now() WHERE ingest_keys.team_id = @team_id AND ingest_keys.revoked_at IS NULL)
UPDATE api_keys SET revoked_at = now() WHERE api_keys.team_id = @team_id AND api_keys.revoked_at IS NULL;

-- TeamGetRevoked returns how many seconds ago the last key of a team was revoked; an hour if it has none.
-- name: TeamGetRevoked :one
SELECT coalesce(extract(epoch FROM clock_timestamp() - max(k.revoked_at)), 3600)::double precision AS seconds
FROM (
    SELECT revoked_at FROM api_keys WHERE api_keys.team_id = @team_id
    UNION ALL
    SELECT revoked_at FROM ingest_keys WHERE ingest_keys.team_id = @team_id
) k;

-- TeamDelete deletes a team that has no devices and no keys, with its sources and aliases, the number of its rejects, and
-- what the change feed has of it.
-- name: TeamDelete :exec
WITH batches AS (DELETE FROM feed_batches WHERE feed_batches.team_id = @team_id),
     days AS (DELETE FROM feed_days WHERE feed_days.team_id = @team_id::uuid),
     usage AS (DELETE FROM reject_usage WHERE reject_usage.team_id = @team_id AND rejects = 0),
     aliases AS (DELETE FROM unit_aliases WHERE unit_aliases.team_id = @team_id),
     own_sources AS (DELETE FROM sources WHERE sources.team_id = @team_id)
DELETE FROM teams WHERE teams.id = @team_id;

-- TeamList lists teams, the oldest first. A null name selects all, and a null most has no limit.
-- name: TeamList :many
SELECT id, name FROM teams WHERE sqlc.narg(name)::text IS NULL OR name = sqlc.narg(name)
ORDER BY created_at, id LIMIT sqlc.narg(most)::bigint;
