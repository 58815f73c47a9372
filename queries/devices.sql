-- DeviceList reads a page of a team's devices. metadata is the filter; after is the last id of the previous page, null
-- on the first page.
-- name: DeviceList :many
SELECT * FROM device_details
WHERE team_id = @team_id
  AND metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR id > sqlc.narg(after))
ORDER BY id
LIMIT @most::bigint;

-- DeviceStateList reads the same page as DeviceList, without units and tags.
-- name: DeviceStateList :many
SELECT id, display_name, last_seen_at, assignment_id, label, started_at, external_ref FROM device_details
WHERE team_id = @team_id
  AND metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR id > sqlc.narg(after))
ORDER BY id
LIMIT @most::bigint;

-- name: DeviceGet :one
SELECT * FROM device_details WHERE team_id = @team_id AND id = @device_id;

-- DeviceNameList lists all devices of a team for an export, because the column names depend on all of them (decision
-- 29).
-- name: DeviceNameList :many
SELECT id, display_name FROM devices WHERE team_id = @team_id ORDER BY id;

-- DeviceTaggedList lists the ids of a team's devices that have all tags of metadata.
-- name: DeviceTaggedList :many
SELECT id FROM devices WHERE team_id = @team_id AND metadata @> @metadata::jsonb ORDER BY id;

-- DeviceIDList returns those of some ids that are devices of the team, each once.
-- name: DeviceIDList :many
SELECT id FROM devices WHERE team_id = @team_id AND id = ANY(@device_ids::uuid[]) ORDER BY id;

-- DeviceUpdate applies a patch to a device and returns the row of device_details after it, in one statement (decision
-- 21). It changes and returns nothing if a change of tags would leave more than most_tags of them. The view would read
-- the device as it was before the statement, so that its columns are repeated here.
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
SELECT d.id, d.team_id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM changed d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;

-- DeviceHeartbeatLock locks devices in one order, before DeviceHeartbeatUpdate does, to prevent deadlocks between
-- workers. It returns those that exist.
-- name: DeviceHeartbeatLock :many
SELECT id FROM devices WHERE id = ANY(@device_ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- DeviceHeartbeatUpdate moves the state of devices forward to the newest arrival and never back (decision 39). Two
-- uploads that arrived in the same microsecond are ordered by their content, so that the order of delivery cannot
-- matter. Without has_signal or has_firmware the columns of that part are ignored. It also moves latest_bucket_at forward
-- to the newest stored reading, unless it is unknown. The first instant of year 1 as seen_at or newest_at stands for
-- none.
-- name: DeviceHeartbeatUpdate :exec
UPDATE devices d
SET last_seen_at = greatest(d.last_seen_at, s.seen_at),
    rssi_dbm     = CASE WHEN s.new_signal THEN s.rssi_dbm ELSE d.rssi_dbm END,
    signal_bars  = CASE WHEN s.new_signal THEN s.signal_bars ELSE d.signal_bars END,
    signal_at    = CASE WHEN s.new_signal THEN s.signal_at ELSE d.signal_at END,
    firmware_version = CASE WHEN s.new_firmware THEN s.firmware ELSE d.firmware_version END,
    firmware_at  = CASE WHEN s.new_firmware THEN s.firmware_at ELSE d.firmware_at END,
    latest_bucket_at = CASE WHEN s.newest_at > d.latest_bucket_at THEN s.newest_at ELSE d.latest_bucket_at END
FROM (
    SELECT u.*,
           (u.has_signal AND (o.signal_at IS NULL OR
               (u.signal_at, coalesce(u.rssi_dbm, -2147483648), coalesce(u.signal_bars, -1))
               > (o.signal_at, coalesce(o.rssi_dbm, -2147483648), coalesce(o.signal_bars, -1)))) AS new_signal,
           (u.has_firmware AND (o.firmware_at IS NULL OR
               (u.firmware_at, u.firmware COLLATE "C") > (o.firmware_at, coalesce(o.firmware_version, '') COLLATE "C"))) AS new_firmware
    FROM (
        SELECT unnest(@device_ids::uuid[]) AS device_id,
               nullif(unnest(@seen_at::timestamptz[]), '0001-01-01 00:00:00Z') AS seen_at,
               unnest(@has_signal::boolean[]) AS has_signal,
               unnest(@signal_at::timestamptz[]) AS signal_at,
               nullif(unnest(@rssi_dbm::integer[]), -2147483648) AS rssi_dbm,
               nullif(unnest(@signal_bars::smallint[]), -1) AS signal_bars,
               unnest(@has_firmware::boolean[]) AS has_firmware,
               unnest(@firmware_at::timestamptz[]) AS firmware_at,
               unnest(@firmware::text[]) AS firmware,
               nullif(unnest(@newest_at::timestamptz[]), '0001-01-01 00:00:00Z') AS newest_at
    ) u
    JOIN devices o ON o.id = u.device_id
) s
WHERE d.id = s.device_id
  AND ((s.seen_at IS NOT NULL AND d.last_seen_at IS NULL) OR s.seen_at > d.last_seen_at OR s.new_signal OR s.new_firmware
       OR s.newest_at > d.latest_bucket_at);

-- The queries below serve the operator's commands, which work on all teams.

-- DeviceInsert inserts a device without readings: its id is new.
-- name: DeviceInsert :one
INSERT INTO devices (team_id, hardware_id, display_name, metadata, latest_bucket_at)
VALUES (@team_id, @hardware_id, @display_name, @metadata, '-infinity')
RETURNING id;

-- name: DeviceGetByID :one
SELECT * FROM device_details WHERE id = @device_id;

-- name: DeviceListByTeam :many
SELECT * FROM device_details WHERE team_id = @team_id ORDER BY id;

-- DeviceListByName lists devices with a name, of one team or of all, at most @most of them.
-- name: DeviceListByName :many
SELECT id, team_id, hardware_id FROM devices
WHERE display_name = @name::text AND (sqlc.narg(of_team)::uuid IS NULL OR team_id = sqlc.narg(of_team))
ORDER BY id LIMIT @most::bigint;

-- DeviceGetByUnit finds the device, of one team or of any, in which a unit is installed.
-- name: DeviceGetByUnit :one
SELECT d.id FROM devices d
JOIN device_hardware h ON h.device_id = d.id AND h.removed_at IS NULL
WHERE h.hardware_id = @hardware_id AND (sqlc.narg(of_team)::uuid IS NULL OR d.team_id = sqlc.narg(of_team));

-- name: DeviceLockByID :one
SELECT id FROM devices WHERE id = @device_id FOR NO KEY UPDATE;

-- DeviceContentsGet counts what belongs to a device.
-- name: DeviceContentsGet :one
SELECT (SELECT count(*) FROM readings r WHERE r.device_id = @device_id) AS readings,
       (SELECT count(*) FROM assignments a WHERE a.device_id = @device_id) AS assignments,
       (SELECT count(*) FROM device_hardware h WHERE h.device_id = @device_id) AS installations;

-- DeviceLockForDelete waits for the transactions that store uploads of a device, and lets no other one begin.
-- name: DeviceLockForDelete :one
SELECT id FROM devices WHERE id = @device_id FOR UPDATE;

-- name: DeviceDelete :exec
DELETE FROM devices WHERE id = @device_id;

-- name: DeviceSetHardware :exec
UPDATE devices SET hardware_id = @hardware_id WHERE id = @device_id;
