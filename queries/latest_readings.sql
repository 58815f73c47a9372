-- DeviceLatestList reads the bounds of the newest readings of some devices of some teams.
-- name: DeviceLatestList :many
SELECT id, latest_bucket_at FROM devices WHERE team_id = ANY(@team_ids::uuid[]) AND id = ANY(@device_ids::uuid[]);

-- ForeignRangeList lists the ranges in which devices may have readings after their latest_bucket_at.
-- name: ForeignRangeList :many
SELECT DISTINCT range_start::timestamptz AS range_start, range_end::timestamptz AS range_end FROM foreign_writes
WHERE transaction IS NOT NULL AND NOT searched AND range_start < @before::timestamptz ORDER BY range_start;

-- WorkerSet tells the trigger of readings that a worker writes: the transaction records itself in feed_batches, and updates
-- latest_bucket_at and the row of every device whose readings it changes. The other settings leave one plan for DeviceHeartbeatUpdate, which locks the
-- devices in the order of their ids. Without JIT, because a statement that must read a whole table, like
-- ReadingUpsertIncoming, is expected to be very expensive.
-- name: WorkerSet :exec
SELECT set_config('roomsensor.worker', 'on', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true);

-- The queries below keep latest_bucket_at up to date, for the devices of all teams.

-- ForeignRangeTake marks ranges as searched and returns them. A row without a range is marked from the start.
-- name: ForeignRangeTake :many
UPDATE foreign_writes SET searched = true WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM foreign_writes WHERE transaction IS NOT NULL AND NOT searched
    LIMIT @most::integer FOR UPDATE SKIP LOCKED))
RETURNING range_start::timestamptz AS range_start, range_end::timestamptz AS range_end;

-- DeviceLatestListBehind lists devices that have a reading after latest_bucket_at in a window, and the newest one of
-- these, by id after one.
-- name: DeviceLatestListBehind :many
SELECT d.id AS device_id, r.bucket_at
FROM devices d
CROSS JOIN LATERAL (
    SELECT readings.bucket_at FROM readings
    WHERE readings.device_id = d.id AND readings.bucket_at > d.latest_bucket_at
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
    ORDER BY readings.bucket_at DESC LIMIT 1
) r
WHERE d.id > @after::uuid
ORDER BY d.id
LIMIT @most::bigint;

-- DeviceLatestPage reads a page of the devices of all teams.
-- name: DeviceLatestPage :many
SELECT id, latest_bucket_at FROM devices WHERE id > @after::uuid ORDER BY id LIMIT @most::bigint;

-- DeviceLatestListMissing lists those of some devices that have no reading at latest_bucket_at, if that is in a window,
-- which excludes chunks.
-- name: DeviceLatestListMissing :many
SELECT d.id FROM devices d
WHERE d.id = ANY(@device_ids::uuid[])
  AND d.latest_bucket_at >= @window_from::timestamptz AND d.latest_bucket_at < @window_to::timestamptz
  AND NOT EXISTS (
      SELECT FROM readings r
      WHERE r.device_id = d.id AND r.bucket_at = d.latest_bucket_at
        AND r.bucket_at >= @window_from::timestamptz AND r.bucket_at < @window_to::timestamptz);

-- DeviceLatestLock locks some devices in the order of DeviceHeartbeatLock, and returns them. It passes over devices that a
-- worker has locked.
-- name: DeviceLatestLock :many
SELECT id FROM devices WHERE id = ANY(@device_ids::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- DeviceLatestSearch sets latest_bucket_at of locked devices to their newest reading. merge_version changes, because what
-- it says is about latest_bucket_at, which may go back.
-- name: DeviceLatestSearch :exec
UPDATE devices SET latest_bucket_at = coalesce((
    SELECT r.bucket_at FROM readings r WHERE r.device_id = devices.id ORDER BY r.bucket_at DESC LIMIT 1), '-infinity'),
    merge_version = pg_current_xact_id()::text::bigint
WHERE devices.id = ANY(@device_ids::uuid[]);
