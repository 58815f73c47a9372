-- DeviceList reads a page of a team's devices. metadata is the filter; after is the last id of the previous page, null
-- on the first page.
-- name: DeviceList :many
SELECT * FROM device_details
WHERE team_id = @team_id
  AND metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR id > sqlc.narg(after))
ORDER BY id
LIMIT @most::bigint;

-- DeviceVersionListOfTeams reads the versions of devices of some teams, at most @most of each, those with the lowest ids.
-- They are unordered. As long as version and assignment_version are the same, so is the row of device_details.
--
-- version changes in every transaction of a worker that changes a reading of the device. As long as merge_version is the
-- same, they only added readings after latest_bucket_at. writers grows with every change of any readings by other
-- programs: it is the number of rows that were ever committed in foreign_writes. Another server has numbers of its own for
-- its transactions, and another time of its start. The first row has the chunks of readings.
-- name: DeviceVersionListOfTeams :many
SELECT d.id, d.team_id, d.version::xid AS version, xid(a.xmin) AS assignment_version,
       d.latest_bucket_at, d.merge_version,
       pg_postmaster_start_time()::timestamptz AS server_started_at,
       (SELECT s.foreign_writes + (SELECT count(*) FROM foreign_writes w WHERE w.transaction IS NOT NULL)
            FROM feed_state s)::bigint AS writers,
       (CASE WHEN row_number() OVER () = 1 THEN ARRAY(
            SELECT i.inhrelid::bigint FROM pg_catalog.pg_inherits i WHERE i.inhparent = 'readings'::regclass ORDER BY 1
        ) END)::bigint[] AS chunks
FROM unnest(@team_ids::uuid[]) t (id)
CROSS JOIN LATERAL (
    SELECT devices.id, devices.team_id, devices.latest_bucket_at, devices.merge_version, xid(devices.xmin) AS version
    FROM devices WHERE team_id = t.id ORDER BY devices.id LIMIT @most::bigint) d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.team_id = ANY(@team_ids::uuid[]);

-- DeviceListByIDs reads some devices of some teams, unordered.
-- name: DeviceListByIDs :many
SELECT * FROM device_details WHERE team_id = ANY(@team_ids::uuid[]) AND id = ANY(@device_ids::uuid[]);

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
-- the device as it was before the statement, so that its columns are repeated here. It also sets the actor for the audit
-- log, whose trigger runs after the statement: a statement of its own would be another round trip.
-- name: DeviceUpdate :one
WITH changed AS (
    UPDATE devices
    SET display_name = CASE WHEN @set_display_name::boolean THEN sqlc.narg(new_name)::text ELSE devices.display_name END,
        metadata = (CASE WHEN @clear::boolean THEN '{}' ELSE devices.metadata END || @tags::jsonb) - @removed_tags::text[]
    WHERE devices.team_id = @team_id AND devices.id = @device_id
      AND set_config('roomsensor.actor', @actor::text, true) IS NOT NULL
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

-- name: DeviceSetHardware :exec
UPDATE devices SET hardware_id = @hardware_id WHERE team_id = @team_id AND id = @device_id;

-- name: DeviceLock :one
SELECT id FROM devices WHERE team_id = @team_id AND id = @device_id FOR NO KEY UPDATE;

-- DeviceHeartbeatUpdate moves the state of devices forward to the newest arrival and never back (decision 39). Two
-- uploads that arrived in the same microsecond are ordered by their content, so that the order of delivery cannot
-- matter. It also moves latest_bucket_at forward to the newest stored reading, unless it is unknown. The first instant of
-- year 1 as a time stands for none; then the columns of that part are ignored.
--
-- oldest_at and newest_at are the buckets of a device's first and last reading in the transaction. A device with newest_at
-- is always updated, so that its row has another xmin after each transaction that stored readings of it. Unless all of
-- them are after latest_bucket_at, merge_version changes too. The statement returns the devices that it updated. It
-- locks them in the order of device_ids, which is ascending, to prevent deadlocks: WorkerSet disables plans with another
-- order.
-- name: DeviceHeartbeatUpdate :many
UPDATE devices d
SET last_seen_at = greatest(d.last_seen_at, u.seen_at),
    rssi_dbm = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(d.signal_at, '-infinity'), coalesce(d.rssi_dbm, -2147483648), coalesce(d.signal_bars, -1))
        THEN nullif(u.rssi_dbm, -2147483648) ELSE d.rssi_dbm END,
    signal_bars = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(d.signal_at, '-infinity'), coalesce(d.rssi_dbm, -2147483648), coalesce(d.signal_bars, -1))
        THEN nullif(u.signal_bars, -1) ELSE d.signal_bars END,
    signal_at = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(d.signal_at, '-infinity'), coalesce(d.rssi_dbm, -2147483648), coalesce(d.signal_bars, -1))
        THEN u.signal_at ELSE d.signal_at END,
    firmware_version = CASE WHEN (u.firmware_at, u.firmware COLLATE "C")
            > (coalesce(d.firmware_at, '-infinity'), coalesce(d.firmware_version, '') COLLATE "C")
        THEN u.firmware ELSE d.firmware_version END,
    firmware_at = CASE WHEN (u.firmware_at, u.firmware COLLATE "C")
            > (coalesce(d.firmware_at, '-infinity'), coalesce(d.firmware_version, '') COLLATE "C")
        THEN u.firmware_at ELSE d.firmware_at END,
    latest_bucket_at = CASE WHEN u.newest_at > d.latest_bucket_at THEN u.newest_at ELSE d.latest_bucket_at END,
    merge_version = CASE WHEN u.newest_at IS NULL OR u.oldest_at > d.latest_bucket_at
        THEN d.merge_version ELSE pg_current_xact_id()::text::bigint END
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id,
           nullif(unnest(@seen_at::timestamptz[]), '0001-01-01 00:00:00Z') AS seen_at,
           nullif(unnest(@signal_at::timestamptz[]), '0001-01-01 00:00:00Z') AS signal_at,
           unnest(@rssi_dbm::integer[]) AS rssi_dbm,
           unnest(@signal_bars::smallint[]) AS signal_bars,
           nullif(unnest(@firmware_at::timestamptz[]), '0001-01-01 00:00:00Z') AS firmware_at,
           unnest(@firmware::text[]) AS firmware,
           unnest(@oldest_at::timestamptz[]) AS oldest_at,
           nullif(unnest(@newest_at::timestamptz[]), '0001-01-01 00:00:00Z') AS newest_at
) u
WHERE d.id = u.device_id
  AND (u.newest_at IS NOT NULL OR u.seen_at > coalesce(d.last_seen_at, '-infinity')
       OR (u.signal_at, u.rssi_dbm, u.signal_bars)
           > (coalesce(d.signal_at, '-infinity'), coalesce(d.rssi_dbm, -2147483648), coalesce(d.signal_bars, -1))
       OR (u.firmware_at, u.firmware COLLATE "C")
           > (coalesce(d.firmware_at, '-infinity'), coalesce(d.firmware_version, '') COLLATE "C"))
RETURNING d.id;

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

-- DeviceCountByStatus counts the devices of all teams by their status, for metrics. last_seen_at of an online device is
-- after stale_from, and that of a stale one is not before offline_before.
-- name: DeviceCountByStatus :one
SELECT count(*) AS devices,
       count(*) FILTER (WHERE last_seen_at > @stale_from::timestamptz) AS online,
       count(*) FILTER (WHERE last_seen_at <= @stale_from AND last_seen_at >= @offline_before::timestamptz) AS stale
FROM devices;
