-- NightAssignmentList lists the assignments of a team that overlap a night, with the names and tags of their devices; with athletes,
-- only those of athletes, with external_ref only those with the reference, with ids only these, and only those of devices with all
-- tags of metadata.
-- name: NightAssignmentList :many
SELECT sqlc.embed(a), d.display_name, d.metadata
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id
  AND d.metadata @> @metadata::jsonb
  AND (a.type = 'athlete' OR NOT @athletes::boolean)
  AND (sqlc.narg(external_ref)::text IS NULL OR a.external_ref = sqlc.narg(external_ref))
  AND (sqlc.narg(ids)::uuid[] IS NULL OR a.id = ANY(sqlc.narg(ids)))
  AND a.started_at < @window_to::timestamptz
  AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)
ORDER BY a.device_id, a.started_at
LIMIT @most::bigint;

-- WindowAssignmentList lists the assignments of a team that overlap a window.
-- name: WindowAssignmentList :many
SELECT a.* FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id
  AND a.started_at < @window_to::timestamptz
  AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)
ORDER BY a.device_id, a.started_at
LIMIT @most::bigint;

-- NightAssignmentCount counts the assignments that NightAssignmentList lists for each night in which there are any.
-- name: NightAssignmentCount :many
SELECT count(*) FROM (
    SELECT unnest(@night_from::timestamptz[]) AS night_from, unnest(@night_to::timestamptz[]) AS night_to
) n
JOIN assignments a ON a.started_at < n.night_to AND (a.ended_at IS NULL OR a.ended_at > n.night_from)
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id
  AND d.metadata @> @metadata::jsonb
  AND (sqlc.narg(external_ref)::text IS NULL OR a.external_ref = sqlc.narg(external_ref))
GROUP BY n.night_from;
