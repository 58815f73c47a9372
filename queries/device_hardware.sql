-- HardwareList is every interval of some units (decision 40).
-- name: HardwareList :many
SELECT h.hardware_id, h.device_id, d.team_id, h.installed_at, h.removed_at
FROM device_hardware h
JOIN devices d ON d.id = h.device_id
WHERE h.hardware_id = ANY(@hardware_ids::text[])
ORDER BY h.hardware_id, h.installed_at NULLS FIRST;

-- name: HardwareInsert :exec
INSERT INTO device_hardware (hardware_id, device_id, installed_at)
VALUES (@hardware_id, @device_id, sqlc.narg(installed_at));

-- name: HardwareKnown :one
SELECT EXISTS (SELECT FROM device_hardware WHERE hardware_id = @hardware_id);

-- HardwareSince is the last device that a unit sat in at an instant or after it.
-- name: HardwareSince :one
SELECT device_id, installed_at, removed_at FROM device_hardware
WHERE hardware_id = @hardware_id AND (removed_at IS NULL OR removed_at > sqlc.narg(at)::timestamptz OR sqlc.narg(at) IS NULL)
ORDER BY installed_at DESC NULLS LAST
LIMIT 1;

-- DeviceHardwareLast is the unit that sits in a device, or the last that did.
-- name: DeviceHardwareLast :one
SELECT hardware_id, installed_at, removed_at FROM device_hardware
WHERE device_id = @device_id
ORDER BY installed_at DESC NULLS LAST
LIMIT 1;

-- HardwareRemove ends the open interval of a device.
-- name: HardwareRemove :exec
UPDATE device_hardware SET removed_at = @removed_at::timestamptz
WHERE device_id = @device_id AND removed_at IS NULL;
