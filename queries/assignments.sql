-- AssignmentList reads a page of a device's assignments, the newest first. after_started_at and after_id are those of
-- the last row of the previous page; null on the first page.
-- name: AssignmentList :many
SELECT a.id, a.device_id, a.type, a.label, a.home_or_travel, a.external_ref, a.started_at, a.ended_at
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND a.device_id = @device_id
  AND (sqlc.narg(after_started_at)::timestamptz IS NULL
       OR a.started_at < sqlc.narg(after_started_at)
       OR (a.started_at = sqlc.narg(after_started_at) AND a.id > sqlc.narg(after_id)::uuid))
ORDER BY a.started_at DESC, a.id
LIMIT @most::bigint;

-- AssignmentListByTeam reads a page of the assignments of a team that overlap a window, in the order of AssignmentList. A null
-- filter selects all.
-- name: AssignmentListByTeam :many
SELECT sqlc.embed(a), d.hardware_id, d.display_name
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id
  AND d.metadata @> @metadata::jsonb
  AND a.started_at < @window_to::timestamptz
  AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)
  AND (sqlc.narg(type)::text IS NULL OR a.type = sqlc.narg(type))
  AND (sqlc.narg(label)::text IS NULL OR a.label = sqlc.narg(label))
  AND (sqlc.narg(external_ref)::text IS NULL OR a.external_ref = sqlc.narg(external_ref))
  AND (sqlc.narg(after_started_at)::timestamptz IS NULL
       OR a.started_at < sqlc.narg(after_started_at)
       OR (a.started_at = sqlc.narg(after_started_at) AND a.id > sqlc.narg(after_id)::uuid))
ORDER BY a.started_at DESC, a.id
LIMIT @most::bigint;

-- name: AssignmentGet :one
SELECT a.id, a.device_id, a.type, a.label, a.home_or_travel, a.external_ref, a.started_at, a.ended_at
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND a.id = @assignment_id;

-- AssignmentListHeld lists the assignments that held some devices during a window, by device and start. A null
-- external_ref selects all.
-- name: AssignmentListHeld :many
SELECT a.* FROM assignments a
WHERE a.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[]))
  AND a.started_at < @window_to::timestamptz AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)
  AND (sqlc.narg(external_ref)::text IS NULL OR a.external_ref = sqlc.narg(external_ref))
ORDER BY a.device_id, a.started_at
LIMIT @most::bigint;

-- AssignmentInsert inserts an assignment of a device of the team.
-- name: AssignmentInsert :one
INSERT INTO assignments (device_id, type, label, home_or_travel, external_ref, started_at)
SELECT d.id, @type, @label, @home_or_travel, @external_ref, @started_at FROM devices d
WHERE d.team_id = @team_id AND d.id = @device_id
RETURNING *;

-- name: AssignmentLock :one
SELECT a.* FROM assignments a
WHERE a.id = @assignment_id AND a.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
FOR NO KEY UPDATE OF a;

-- AssignmentGetOverlap finds the newest assignment of a device, but for one, that overlaps an interval; a null end is open.
-- name: AssignmentGetOverlap :one
SELECT a.* FROM assignments a
WHERE a.device_id = @device_id AND a.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
  AND a.id <> @except_id::uuid
  AND tstzrange(a.started_at, a.ended_at) && tstzrange(@started_at::timestamptz, sqlc.narg(ended_at)::timestamptz)
ORDER BY a.started_at DESC
LIMIT 1;

-- name: AssignmentUpdate :one
UPDATE assignments a SET type = @type, label = @label, home_or_travel = @home_or_travel, external_ref = @external_ref,
    started_at = @started_at, ended_at = @ended_at
WHERE a.id = @assignment_id AND a.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
RETURNING a.*;

-- name: AssignmentDelete :exec
DELETE FROM assignments a
WHERE a.id = @assignment_id AND a.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id);

-- AssignmentDeviceList lists the devices of some assignments.
-- name: AssignmentDeviceList :many
SELECT a.id, a.device_id FROM assignments a JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND a.id = ANY(@assignment_ids::uuid[]);

-- AthleteOpenList lists the open assignments of athletes with their devices, by label.
-- name: AthleteOpenList :many
SELECT sqlc.embed(a), d.hardware_id, d.display_name
FROM assignments a JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND a.ended_at IS NULL AND a.type = 'athlete'
ORDER BY a.label COLLATE natural_order, a.id
LIMIT @most::bigint;

-- AthleteList lists how the newest assignments of each device name athletes, those that started last first.
-- name: AthleteList :many
SELECT a.label, a.external_ref
FROM devices d
CROSS JOIN LATERAL (
    SELECT * FROM assignments x WHERE x.device_id = d.id ORDER BY x.started_at DESC LIMIT @of_device::bigint
) a
WHERE d.team_id = @team_id AND a.type = 'athlete'
GROUP BY a.label, a.external_ref
ORDER BY max(a.started_at) DESC, a.label
LIMIT @most::bigint;

-- The queries below serve the operator's commands, which work on all teams.

-- AssignmentGetTeam returns the team of an assignment.
-- name: AssignmentGetTeam :one
SELECT d.team_id FROM assignments a JOIN devices d ON d.id = a.device_id WHERE a.id = @assignment_id;

-- name: AssignmentDeleteByDevice :execrows
DELETE FROM assignments WHERE device_id = @device_id;
