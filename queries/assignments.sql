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

-- name: AssignmentInsert :one
INSERT INTO assignments (device_id, type, label, home_or_travel, external_ref, started_at)
VALUES (@device_id, @type, @label, @home_or_travel, @external_ref, @started_at)
RETURNING *;

-- AssignmentLockAny and the two below serve the operator's commands, which know no team.
-- name: AssignmentLockAny :one
SELECT * FROM assignments WHERE id = @assignment_id FOR NO KEY UPDATE;

-- AssignmentOverlap is a block of a device that ends after an instant.
-- name: AssignmentOverlap :one
SELECT * FROM assignments
WHERE device_id = @device_id AND (ended_at IS NULL OR ended_at > @started_at::timestamptz)
ORDER BY started_at DESC
LIMIT 1;

-- name: AssignmentEnd :one
UPDATE assignments SET ended_at = @ended_at::timestamptz WHERE id = @assignment_id RETURNING *;

-- name: AssignmentListAny :many
SELECT * FROM assignments WHERE device_id = @device_id ORDER BY started_at DESC, id;
