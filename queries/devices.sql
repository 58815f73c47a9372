-- DeviceList reads a page of a team's devices that are not retired. metadata is the filter; after is the last id of the
-- previous page, null on the first page.
-- name: DeviceList :many
SELECT * FROM device_details
WHERE team_id = @team_id AND retired_at IS NULL
  AND metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR id > sqlc.narg(after))
ORDER BY id
LIMIT @most::bigint;

-- CurrentDeviceList reads the same page as DeviceList, with the newest reading of each device, the chunk that it is in, and
-- the versions of its readings. The store runs its text together with CurrentSourceGet.
-- name: CurrentDeviceList :many
SELECT d.id, d.team_id, d.hardware_id, d.display_name, s.firmware_version, d.metadata,
       s.last_seen_at, s.rssi_dbm, s.signal_bars,
       a.id AS assignment_id, a.type AS assignment_type, a.label, a.started_at, a.external_ref,
       s.bucket_at, s.co2_ppm, s.temp_c, s.humidity_pct, s.lux, s.spl_db, s.ingested_at,
       coalesce(s.chunk, 0)::bigint AS chunk, s.readings_version, s.late_version
FROM devices d
JOIN device_state s ON s.device_id = d.id
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL
WHERE d.team_id = @team_id AND d.retired_at IS NULL
  AND d.metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR d.id > sqlc.narg(after))
ORDER BY d.id
LIMIT @most::bigint;

-- CurrentSourceGet reads a number that changes with every change of any readings by other programs, and with the server,
-- which has numbers of its own for its transactions: foreign_writes says how many rows were ever committed there. chunks has
-- the chunks of the readings, in ascending order.
-- name: CurrentSourceGet :one
SELECT hashtextextended(concat(pg_postmaster_start_time(), ',',
           s.foreign_writes + (SELECT count(*) FROM foreign_writes w WHERE w.transaction IS NOT NULL)), 0)::bigint AS version,
       ARRAY(SELECT chunk_number(i.inhrelid)::bigint FROM pg_catalog.pg_inherits i WHERE i.inhparent = 'readings'::regclass ORDER BY 1)::bigint[]
           AS chunks
FROM feed_state s;

-- DeviceStateList reads the same page as DeviceList, without units and tags. With an external_ref it has only the devices
-- with an assignment of that reference that overlaps the window.
-- name: DeviceStateList :many
SELECT id, display_name, last_seen_at, assignment_id, label, started_at, external_ref FROM device_details
WHERE team_id = @team_id AND retired_at IS NULL
  AND metadata @> @metadata::jsonb
  AND (sqlc.narg(after)::uuid IS NULL OR id > sqlc.narg(after))
  AND (sqlc.narg(external_ref)::text IS NULL OR id IN (
      SELECT a.device_id FROM assignments a WHERE a.external_ref = sqlc.narg(external_ref)
      AND a.started_at < @window_to::timestamptz AND (a.ended_at IS NULL OR a.ended_at > @window_from::timestamptz)))
ORDER BY id
LIMIT @most::bigint;

-- name: DeviceGet :one
SELECT * FROM device_details WHERE team_id = @team_id AND id = @device_id;

-- DeviceNameList lists all devices of a team for an export, because the column names depend on all of them (decision
-- 29).
-- name: DeviceNameList :many
SELECT id, display_name, (retired_at IS NOT NULL)::boolean AS retired FROM devices WHERE team_id = @team_id ORDER BY id;

-- DeviceTaggedList lists the ids of a team's devices that have all tags of metadata.
-- name: DeviceTaggedList :many
SELECT id FROM devices WHERE team_id = @team_id AND metadata @> @metadata::jsonb ORDER BY id;

-- DeviceIDList returns those of some ids that are devices of the team, each once.
-- name: DeviceIDList :many
SELECT id FROM devices WHERE team_id = @team_id AND id = ANY(@device_ids::uuid[]) ORDER BY id;

-- DeviceUpdate applies a patch to a device and returns the row of device_details after it, in one statement (decision
-- 21). It changes and returns nothing if a change of tags would leave more than most_tags of them. The view would read
-- the device as it was before the statement, so that its columns are repeated here. It also sets the actor for the audit
-- log, whose trigger runs after the statement: a statement of its own would be another round trip. DeviceLock runs before
-- it, so that it sees the assignments as of the change.
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
SELECT d.id, d.team_id, d.hardware_id, d.display_name, s.firmware_version, d.metadata,
       s.last_seen_at, s.rssi_dbm, s.signal_bars,
       a.id AS assignment_id, a.type AS assignment_type, a.label, a.started_at, a.external_ref,
       d.retired_at
FROM changed d
JOIN device_state s ON s.device_id = d.id
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;

-- name: DeviceSetHardware :exec
UPDATE devices SET hardware_id = @hardware_id WHERE team_id = @team_id AND id = @device_id;

-- name: DeviceLock :one
SELECT id FROM devices WHERE team_id = @team_id AND id = @device_id FOR NO KEY UPDATE;

-- DeviceSampledList lists those of some devices that may have samples.
-- name: DeviceSampledList :many
SELECT device_id FROM device_state WHERE device_id = ANY(@device_ids::uuid[]) AND sampled;

-- DeviceHeartbeatUpdate moves the state of devices forward to the newest arrival and never back (decision 39). Two
-- uploads that arrived in the same microsecond are ordered by their content, so that the order of delivery cannot
-- matter. The first instant of year 1 as a time stands for none; then the columns of that part are ignored.
--
-- oldest_at and newest_at are the buckets of a device's first and last reading in the transaction, which has stored them.
-- window_from and window_to enclose those of newest_at; they exclude chunks. A reading at newest_at that is not older
-- than the newest one is copied. LIMIT makes it be searched per device: otherwise the planner may read all chunks of the
-- window, because those in the columnstore seem to cost nothing. The versions change as their comments in the schema say.
--
-- The statement returns the devices that it updated: each with newest_at, unless it was deleted; and whether they may have
-- samples. It locks them in the order
-- of device_ids, which is ascending, to prevent deadlocks: WorkerSet disables plans with another order.
-- name: DeviceHeartbeatUpdate :many
UPDATE device_state s
SET last_seen_at = greatest(s.last_seen_at, u.seen_at),
    rssi_dbm = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(s.signal_at, '-infinity'), coalesce(s.rssi_dbm, -2147483648), coalesce(s.signal_bars, -1))
        THEN nullif(u.rssi_dbm, -2147483648) ELSE s.rssi_dbm END,
    signal_bars = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(s.signal_at, '-infinity'), coalesce(s.rssi_dbm, -2147483648), coalesce(s.signal_bars, -1))
        THEN nullif(u.signal_bars, -1) ELSE s.signal_bars END,
    signal_at = CASE WHEN (u.signal_at, u.rssi_dbm, u.signal_bars)
            > (coalesce(s.signal_at, '-infinity'), coalesce(s.rssi_dbm, -2147483648), coalesce(s.signal_bars, -1))
        THEN u.signal_at ELSE s.signal_at END,
    firmware_version = CASE WHEN (u.firmware_at, u.firmware COLLATE "C")
            > (coalesce(s.firmware_at, '-infinity'), coalesce(s.firmware_version, '') COLLATE "C")
        THEN u.firmware ELSE s.firmware_version END,
    firmware_at = CASE WHEN (u.firmware_at, u.firmware COLLATE "C")
            > (coalesce(s.firmware_at, '-infinity'), coalesce(s.firmware_version, '') COLLATE "C")
        THEN u.firmware_at ELSE s.firmware_at END,
    readings_version = CASE WHEN u.newest_at IS NULL
        THEN s.readings_version ELSE pg_current_xact_id()::text::bigint END,
    late_version = CASE WHEN u.newest_at IS NULL OR u.oldest_at >= date_bin('1 hour', s.bucket_at, '2000-01-01 00:00:00Z')
        THEN s.late_version ELSE pg_current_xact_id()::text::bigint END,
    bucket_at = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.bucket_at ELSE s.bucket_at END,
    co2_ppm = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.co2_ppm ELSE s.co2_ppm END,
    temp_c = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.temp_c ELSE s.temp_c END,
    humidity_pct = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.humidity_pct ELSE s.humidity_pct END,
    lux = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.lux ELSE s.lux END,
    spl_db = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.spl_db ELSE s.spl_db END,
    ingested_at = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.ingested_at ELSE s.ingested_at END,
    chunk = CASE WHEN r.bucket_at >= coalesce(s.bucket_at, '-infinity') THEN r.chunk ELSE s.chunk END
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
LEFT JOIN LATERAL (
    SELECT readings.*, chunk_number(readings.tableoid) AS chunk FROM readings
    WHERE readings.device_id = u.device_id AND readings.bucket_at = u.newest_at
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at <= @window_to::timestamptz
    LIMIT 1
) r ON true
WHERE s.device_id = u.device_id
  AND (u.newest_at IS NOT NULL OR u.seen_at > coalesce(s.last_seen_at, '-infinity')
       OR (u.signal_at, u.rssi_dbm, u.signal_bars)
           > (coalesce(s.signal_at, '-infinity'), coalesce(s.rssi_dbm, -2147483648), coalesce(s.signal_bars, -1))
       OR (u.firmware_at, u.firmware COLLATE "C")
           > (coalesce(s.firmware_at, '-infinity'), coalesce(s.firmware_version, '') COLLATE "C"))
RETURNING s.device_id, s.sampled;

-- The queries below serve the operator's commands, which work on all teams.

-- DeviceInsert inserts a device, whose id is new: a trigger need not search for its readings.
-- name: DeviceInsert :one
INSERT INTO devices (team_id, hardware_id, display_name, metadata)
SELECT @team_id, @hardware_id, @display_name, @metadata
WHERE set_config('roomsensor.worker', 'on', true) IS NOT NULL
RETURNING id;

-- DeviceSetRetention changes for how many days the readings of a device are kept.
-- name: DeviceSetRetention :exec
UPDATE devices SET keep_days = sqlc.narg(keep_days) WHERE team_id = @team_id AND id = @device_id;

-- DeviceRetentionList lists the devices of a team that have a retention of their own.
-- name: DeviceRetentionList :many
SELECT id, keep_days::integer AS keep_days FROM devices WHERE team_id = @team_id AND keep_days IS NOT NULL;

-- name: DeviceGetByID :one
SELECT * FROM device_details WHERE id = @device_id;

-- DeviceListByTeam lists the devices of a team that are retired, or those that are not.
-- name: DeviceListByTeam :many
SELECT * FROM device_details WHERE team_id = @team_id AND (retired_at IS NOT NULL) = @retired::boolean ORDER BY id;

-- DeviceRetire sets since when a device is retired; null brings it back.
-- name: DeviceRetire :exec
UPDATE devices SET retired_at = sqlc.narg(at) WHERE team_id = @team_id AND id = @device_id
  AND (retired_at IS NULL) = (sqlc.narg(at)::timestamptz IS NOT NULL);

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
SELECT device_id FROM device_state WHERE device_id = @device_id FOR UPDATE;

-- name: DeviceDelete :exec
DELETE FROM devices WHERE id = @device_id;

-- DeviceCountByStatus counts the devices of all teams that are not retired by their status, for metrics. last_seen_at of
-- an online device is after stale_from, and that of a stale one is not before offline_before.
-- name: DeviceCountByStatus :one
SELECT count(*) AS devices,
       count(*) FILTER (WHERE last_seen_at > @stale_from::timestamptz) AS online,
       count(*) FILTER (WHERE last_seen_at <= @stale_from AND last_seen_at >= @offline_before::timestamptz) AS stale
FROM device_state s JOIN devices d ON d.id = s.device_id WHERE d.retired_at IS NULL;
