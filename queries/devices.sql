-- name: DeviceInsert :one
INSERT INTO devices (team_id, hardware_id, display_name, metadata)
VALUES (@team_id, @hardware_id, @display_name, @metadata)
RETURNING id;

-- DeviceList reads one row more than a page, or less. metadata is the filter.
-- name: DeviceList :many
SELECT d.id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.team_id = @team_id
  AND d.metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR d.id > sqlc.narg(after))
ORDER BY d.id
LIMIT @most::bigint;

-- name: DeviceGet :one
SELECT d.id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.team_id = @team_id AND d.id = @device_id;

-- DeviceNameList serves the export, whose column names depend on every device
-- of the team.
-- name: DeviceNameList :many
SELECT id, display_name FROM devices WHERE team_id = @team_id ORDER BY id;

-- DeviceIDList is which of some ids are of devices of the team, each once.
-- name: DeviceIDList :many
SELECT id FROM devices WHERE team_id = @team_id AND id = ANY(@device_ids::uuid[]) ORDER BY id;

-- DeviceUpdate merges a change into a device and reads it, in one statement.
-- It changes nothing where a change of tags would leave more of them than most.
-- name: DeviceUpdate :one
WITH changed AS (
    UPDATE devices
    SET display_name = CASE WHEN @set_display_name::boolean THEN sqlc.narg(new_name)::text ELSE devices.display_name END,
        metadata = (CASE WHEN @clear::boolean THEN '{}' ELSE devices.metadata END || @tags::jsonb) - @removed_tags::text[]
    WHERE devices.team_id = @team_id AND devices.id = @device_id
      AND (NOT @change_tags::boolean OR @most_tags::bigint >= (
          SELECT count(*) FROM jsonb_object_keys(
              (CASE WHEN @clear::boolean THEN '{}' ELSE devices.metadata END || @tags::jsonb) - @removed_tags::text[])))
    RETURNING devices.*
)
SELECT d.id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM changed d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;

-- DeviceGetAny serves the operator's commands, which know no team.
-- name: DeviceGetAny :one
SELECT d.id, d.team_id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.id = @device_id;

-- name: DeviceLockAny :one
SELECT id FROM devices WHERE id = @device_id FOR NO KEY UPDATE;

-- name: DeviceSetHardware :exec
UPDATE devices SET hardware_id = @hardware_id WHERE id = @device_id;

-- DeviceLockSeen takes the locks of DeviceSeen in one order, against deadlocks
-- between workers.
-- name: DeviceLockSeen :exec
SELECT id FROM devices WHERE id = ANY(@device_ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- DeviceSeen moves a device's state forward to the newest arrival and never
-- back (decision 39). Two uploads that arrived in the same microsecond are told
-- apart by what they carry, so that their order cannot matter. A row whose
-- upload carries no signal or no firmware has no time for it.
-- name: DeviceSeen :exec
UPDATE devices d
SET last_seen_at = greatest(d.last_seen_at, s.seen_at),
    rssi_dbm     = CASE WHEN s.new_signal THEN s.rssi_dbm ELSE d.rssi_dbm END,
    signal_bars  = CASE WHEN s.new_signal THEN s.signal_bars ELSE d.signal_bars END,
    signal_at    = CASE WHEN s.new_signal THEN s.signal_at ELSE d.signal_at END,
    firmware_version = CASE WHEN s.new_firmware THEN s.firmware ELSE d.firmware_version END,
    firmware_at  = CASE WHEN s.new_firmware THEN s.firmware_at ELSE d.firmware_at END
FROM (
    SELECT u.*,
           (u.has_signal AND (o.signal_at IS NULL OR
               (u.signal_at, coalesce(u.rssi_dbm, -2147483648), coalesce(u.signal_bars, -1))
               > (o.signal_at, coalesce(o.rssi_dbm, -2147483648), coalesce(o.signal_bars, -1)))) AS new_signal,
           (u.has_firmware AND (o.firmware_at IS NULL OR
               (u.firmware_at, u.firmware COLLATE "C") > (o.firmware_at, coalesce(o.firmware_version, '') COLLATE "C"))) AS new_firmware
    FROM (
        SELECT unnest(@device_ids::uuid[]) AS device_id,
               unnest(@seen_at::timestamptz[]) AS seen_at,
               unnest(@has_signal::boolean[]) AS has_signal,
               unnest(@signal_at::timestamptz[]) AS signal_at,
               nullif(unnest(@rssi_dbm::integer[]), -2147483648) AS rssi_dbm,
               nullif(unnest(@signal_bars::smallint[]), -1) AS signal_bars,
               unnest(@has_firmware::boolean[]) AS has_firmware,
               unnest(@firmware_at::timestamptz[]) AS firmware_at,
               unnest(@firmware::text[]) AS firmware
    ) u
    JOIN devices o ON o.id = u.device_id
) s
WHERE d.id = s.device_id
  AND (d.last_seen_at IS NULL OR s.seen_at > d.last_seen_at OR s.new_signal OR s.new_firmware);

-- DeviceListAny serves the operator's commands: every device of a team, as DeviceGetAny.
-- name: DeviceListAny :many
SELECT d.id, d.team_id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.team_id = @team_id
ORDER BY d.id;
