-- NightAssignmentList lists the assignments of a team that overlap a night, with the names and tags of their devices; with athletes,
-- only those of athletes.
-- name: NightAssignmentList :many
SELECT sqlc.embed(a), d.display_name, d.metadata
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id
  AND (a.type = 'athlete' OR NOT @athletes::boolean)
  AND a.started_at < @window_to::timestamptz
  AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)
ORDER BY a.device_id, a.started_at
LIMIT @most::bigint;
