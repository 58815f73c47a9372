-- HardwareList lists the installations of some distinct hardware units (decision 40), those of a unit the oldest first.
-- The collation selects device_hardware_unit_idx, which OFFSET 0 makes it search once per unit: with = ANY, it reads the
-- whole table until that was analyzed, because the planner then expects each unit to have many rows.
-- name: HardwareList :many
SELECT u.hardware_id::text AS hardware_id, h.device_id, h.team_id, h.sampling, h.installed_at, h.removed_at
FROM unnest(@hardware_ids::text[]) u (hardware_id)
CROSS JOIN LATERAL (
    SELECT i.device_id, d.team_id, d.sampling, i.installed_at, i.removed_at
    FROM device_hardware i
    CROSS JOIN LATERAL (SELECT team_id, sampling FROM devices WHERE id = i.device_id OFFSET 0) d
    WHERE i.hardware_id COLLATE "C" = u.hardware_id
    ORDER BY i.installed_at NULLS FIRST
    OFFSET 0
) h;

-- HardwareListByDevice lists the installations in some devices of a team, by device. A device that never had a unit has
-- one row without bounds, which sets no limit either (A3.3).
-- name: HardwareListByDevice :many
SELECT d.id AS device_id, h.installed_at, h.removed_at
FROM devices d
LEFT JOIN device_hardware h ON h.device_id = d.id
WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
ORDER BY d.id, h.installed_at NULLS FIRST;

-- HardwareListByUnit lists the installations of a unit in devices of a team, the oldest first.
-- name: HardwareListByUnit :many
SELECT d.id AS device_id, d.display_name, s.last_seen_at, h.installed_at, h.removed_at
FROM device_hardware h
JOIN devices d ON d.id = h.device_id
JOIN device_state s ON s.device_id = d.id
WHERE h.hardware_id = @hardware_id AND d.team_id = @team_id
ORDER BY h.installed_at NULLS FIRST;

-- HardwareListHistory lists the installations in a device of a team, the newest first.
-- name: HardwareListHistory :many
SELECT h.hardware_id, h.installed_at, h.removed_at
FROM device_hardware h
JOIN devices d ON d.id = h.device_id
WHERE d.team_id = @team_id AND h.device_id = @device_id
ORDER BY h.installed_at DESC NULLS LAST
LIMIT @most::bigint;

-- HardwareInsert installs a unit in a device of the team.
-- name: HardwareInsert :exec
INSERT INTO device_hardware (hardware_id, device_id, installed_at)
SELECT @hardware_id, d.id, sqlc.narg(installed_at) FROM devices d
WHERE d.team_id = @team_id AND d.id = @device_id;

-- HardwareRemove ends the open installation of a device of the team.
-- name: HardwareRemove :exec
UPDATE device_hardware SET removed_at = @removed_at::timestamptz
WHERE device_id = @device_id AND device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
  AND removed_at IS NULL;

-- The two queries below say where a unit is, whatever the team: it is in one device at a time.

-- HardwareExists reports whether a unit was ever installed.
-- name: HardwareExists :one
SELECT EXISTS (SELECT FROM device_hardware WHERE hardware_id = @hardware_id);

-- HardwareGetSince finds the last installation of a unit that overlaps [at, infinity); null is unbounded.
-- name: HardwareGetSince :one
SELECT device_id, installed_at, removed_at FROM device_hardware
WHERE hardware_id = @hardware_id AND (removed_at IS NULL OR removed_at > sqlc.narg(at)::timestamptz OR sqlc.narg(at) IS NULL)
ORDER BY installed_at DESC NULLS LAST
LIMIT 1;

-- The query below serves the operator's commands, which work on all teams.

-- HardwareDeleteByDevice deletes all installations in a device.
-- name: HardwareDeleteByDevice :execrows
DELETE FROM device_hardware WHERE device_id = @device_id;
