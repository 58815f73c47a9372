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

-- name: AssignmentGet :one
SELECT a.id, a.device_id, a.type, a.label, a.home_or_travel, a.external_ref, a.started_at, a.ended_at
FROM assignments a
JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND a.id = @assignment_id;

-- The queries below serve the operator's commands, which work on all teams.

-- name: AssignmentInsert :one
INSERT INTO assignments (device_id, type, label, home_or_travel, external_ref, started_at)
VALUES (@device_id, @type, @label, @home_or_travel, @external_ref, @started_at)
RETURNING *;

-- name: AssignmentLockByID :one
SELECT * FROM assignments WHERE id = @assignment_id FOR NO KEY UPDATE;

-- AssignmentGetOverlap finds the newest assignment of a device that is open or ends after started_at.
-- name: AssignmentGetOverlap :one
SELECT * FROM assignments
WHERE device_id = @device_id AND (ended_at IS NULL OR ended_at > @started_at::timestamptz)
ORDER BY started_at DESC
LIMIT 1;

-- name: AssignmentEnd :one
UPDATE assignments SET ended_at = @ended_at::timestamptz WHERE id = @assignment_id RETURNING *;

-- name: AssignmentDeleteByDevice :execrows
DELETE FROM assignments WHERE device_id = @device_id;

-- name: AssignmentListByDevice :many
SELECT * FROM assignments WHERE device_id = @device_id ORDER BY started_at DESC, id;
