-- FeedBegin begins the transaction of a worker in the change feed, see schema/00007_feed.sql.
-- name: FeedBegin :exec
SELECT feed_begin();

-- FeedBatchInsert records where a worker changed readings: the first and the last bucket of each device. The team of a
-- device is read by a subquery, because a join can read all devices. A device that was deleted meanwhile has none.
-- name: FeedBatchInsert :exec
INSERT INTO feed_batches (team_id, effective_at, devices, device_ids, first_at, last_at)
SELECT n.team_id, current_setting('roomsensor.ingested_at')::timestamptz, count(*),
       array_agg(n.device_id), array_agg(n.first_at), array_agg(n.last_at)
FROM (
    SELECT (SELECT d.team_id FROM devices d WHERE d.id = u.device_id) AS team_id, u.device_id, u.first_at, u.last_at
    FROM (SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@first_at::timestamptz[]) AS first_at,
                 unnest(@last_at::timestamptz[]) AS last_at) u
) n
GROUP BY n.team_id
HAVING count(n.team_id) > 0;

-- FeedReserve moves feed_reserved forward. Its result counts after its commit.
-- name: FeedReserve :one
SELECT feed_reserve()::timestamptz AS reserved_at;

-- FeedWatermark returns the watermark after a committed FeedReserve: all readings before it are committed.
-- name: FeedWatermark :one
SELECT least(@reserved_at::timestamptz, feed_time(feed_locked()))::timestamptz AS watermark;

-- FeedChangedList lists the devices of some teams that changed between two times.
-- name: FeedChangedList :many
SELECT DISTINCT b.team_id, unnest(b.device_ids)::uuid AS device_id FROM feed_batches b
WHERE b.team_id = ANY(@team_ids::uuid[])
  AND b.effective_at >= @from_at::timestamptz AND b.effective_at < @to_at::timestamptz;

-- FeedDeletedList lists the devices of some teams whose readings were deleted between two times.
-- name: FeedDeletedList :many
SELECT DISTINCT x.team_id, x.device_id FROM reading_deletions x
WHERE x.team_id = ANY(@team_ids::uuid[])
  AND x.effective_at >= @from_at::timestamptz AND x.effective_at < @to_at::timestamptz;

-- FeedDeletionList lists the deletions of readings of a team between two times, at most @most of them.
-- name: FeedDeletionList :many
SELECT x.device_id, x.deleted_from, x.deleted_to, x.effective_at
FROM reading_deletions x
JOIN devices d ON d.id = x.device_id
WHERE x.team_id = @team_id AND x.effective_at >= @from_at::timestamptz AND x.effective_at < @to_at::timestamptz
  AND d.team_id = @team_id AND d.metadata @> @metadata::jsonb
  AND (@every_device::boolean OR d.id = ANY(@device_ids::uuid[]))
  AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = x.device_id AND a.external_ref = sqlc.narg(external_ref)
      AND tstzrange(a.started_at, a.ended_at) && tstzrange(x.deleted_from, x.deleted_to)))
ORDER BY x.effective_at
LIMIT @most::bigint;

-- FeedChangedAll reports whether any device may have changed since a time, because another program wrote readings, or
-- because what workers recorded is deleted already.
-- name: FeedChangedAll :one
SELECT (s.batches_since > @from_at::timestamptz OR EXISTS (
    SELECT FROM foreign_writes w
    WHERE w.effective_at >= @from_at::timestamptz AND w.effective_at < @to_at::timestamptz AND w.range_start IS NOT NULL
))::boolean AS any_device
FROM feed_state s;

-- FeedStateGet returns since when feed_batches and feed_days are complete, how many devices of a team feed_batches has
-- between two times, and whether a position is ahead of the database.
-- name: FeedStateGet :one
SELECT s.batches_since, s.days_since,
       (SELECT coalesce(sum(b.devices), 0) FROM feed_batches b
        WHERE b.team_id = @team_id
          AND b.effective_at >= @from_at::timestamptz AND b.effective_at < @to_at::timestamptz)::bigint AS devices,
       coalesce(feed_ahead(sqlc.narg(cursor_at)::timestamptz), false)::boolean AS ahead
FROM feed_state s;

-- FeedLateList lists the times of late readings: their ingested_at, and their time in the feed.
-- name: FeedLateList :many
SELECT DISTINCT ingested_at, effective_at::timestamptz AS effective_at FROM foreign_writes
WHERE effective_at <> ingested_at AND effective_at >= @from_at::timestamptz AND range_start IS NOT NULL;

-- FeedDeviceList lists where the devices of a team changed between two times, from feed_batches.
-- name: FeedDeviceList :many
SELECT d.id AS device_id, u.first_at::timestamptz AS first_at, u.last_at::timestamptz AS last_at
FROM (
    SELECT unnest(b.device_ids) AS device_id, unnest(b.first_at) AS first_at, unnest(b.last_at) AS last_at
    FROM feed_batches b
    WHERE b.team_id = @team_id AND b.effective_at >= @from_at::timestamptz AND b.effective_at < @to_at::timestamptz
) u
JOIN devices d ON d.id = u.device_id
WHERE d.team_id = @team_id AND d.metadata @> @metadata::jsonb
  AND (@every_device::boolean OR d.id = ANY(@device_ids::uuid[]));

-- FeedRangeList lists where other programs changed readings between two times.
-- name: FeedRangeList :many
SELECT DISTINCT range_start::timestamptz AS first_at, range_end::timestamptz AS last_at FROM foreign_writes
WHERE effective_at >= @from_at::timestamptz AND effective_at < @to_at::timestamptz AND range_start IS NOT NULL;

-- FeedDayList lists the days on which buckets of a team changed between two times. The hour is that of from_at.
-- name: FeedDayList :many
SELECT (day::timestamp AT TIME ZONE 'UTC')::timestamptz AS day_at FROM (
    SELECT w.day FROM feed_days w
    WHERE (w.team_id = @team_id::uuid OR w.team_id IS NULL)
      AND w.written_at >= @from_hour::timestamptz AND w.written_at < @to_at::timestamptz
    UNION
    SELECT feed_range_days(u.first_at, u.last_at) FROM (
        SELECT DISTINCT unnest(b.first_at) AS first_at, unnest(b.last_at) AS last_at FROM feed_batches b
        WHERE b.team_id = @team_id::uuid
          AND b.effective_at >= @from_at::timestamptz AND b.effective_at < @to_at::timestamptz) u
    UNION
    SELECT feed_range_days(range_start, range_end) FROM foreign_writes
    WHERE effective_at >= @from_at::timestamptz AND effective_at < @to_at::timestamptz AND transaction IS NOT NULL
) days
ORDER BY 1;

-- FeedFilterList lists devices of a team from an id on.
-- name: FeedFilterList :many
SELECT id FROM devices
WHERE team_id = @team_id AND id >= @from_id::uuid AND metadata @> @metadata::jsonb
  AND (@every_device::boolean OR id = ANY(@device_ids::uuid[]))
ORDER BY id
LIMIT @most::bigint;

-- FeedReadingList reads the readings of a round from some devices, each named once, in the order of device and bucket.
-- first_at and last_at are the first and the last bucket of each device; all of them are in the window, which excludes
-- chunks. late_in are the times of late readings that belong to the round, late_out those of all others. The store runs
-- its text. It returns nothing unless all devices belong to the team.
-- name: FeedReadingList :many
SELECT r.device_id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id,
           unnest(@first_at::timestamptz[]) AS first_at,
           unnest(@last_at::timestamptz[]) AS last_at
    ORDER BY 1
) n
CROSS JOIN LATERAL (
    SELECT * FROM readings
    WHERE readings.device_id = n.device_id AND readings.bucket_at >= n.first_at AND readings.bucket_at <= n.last_at
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
      AND (readings.ingested_at >= @from_at::timestamptz AND readings.ingested_at < @to_at::timestamptz
           AND readings.ingested_at <> ALL(@late_out::timestamptz[])
           OR readings.ingested_at = ANY(@late_in::timestamptz[]))
) r
WHERE EXISTS (SELECT FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
              HAVING count(*) = cardinality(@device_ids::uuid[]))
  AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
      AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at))
ORDER BY n.device_id, r.bucket_at
LIMIT @most::bigint;

-- The queries below delete what the feed needs no more, for the devices of all teams.

-- FeedStateUpdate records that rows before some times may be deleted.
-- name: FeedStateUpdate :exec
UPDATE feed_state SET batches_since = greatest(batches_since, @batches_before::timestamptz),
                      days_since = greatest(days_since, @days_before::timestamptz);

-- FeedBatchPurge deletes rows of feed_batches and keeps their days.
-- name: FeedBatchPurge :one
WITH gone AS (
    DELETE FROM feed_batches WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM feed_batches WHERE effective_at < @batches_before::timestamptz
        ORDER BY effective_at LIMIT @most::integer FOR UPDATE SKIP LOCKED))
    RETURNING team_id, effective_at, first_at, last_at
), ranges AS (
    SELECT DISTINCT team_id, date_trunc('hour', effective_at, 'UTC') AS written_at,
           date_bin('1 day', unnest(first_at), timestamptz '2000-01-01 00:00:00Z') AS first_at,
           date_bin('1 day', unnest(last_at), timestamptz '2000-01-01 00:00:00Z') AS last_at
    FROM gone
), kept AS (
    INSERT INTO feed_days (team_id, written_at, day)
    SELECT DISTINCT team_id, written_at, feed_range_days(first_at, last_at) FROM ranges
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM gone;

-- ForeignWriteSettle settles rows of foreign_writes: it counts them, and keeps their days.
-- name: ForeignWriteSettle :one
WITH settled AS (
    UPDATE foreign_writes SET transaction = NULL WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM foreign_writes
        WHERE transaction IS NOT NULL AND effective_at < @batches_before::timestamptz
        LIMIT @most::integer FOR UPDATE SKIP LOCKED))
    RETURNING effective_at, range_start, range_end
), kept AS (
    INSERT INTO feed_days (written_at, day)
    SELECT DISTINCT date_trunc('hour', s.effective_at, 'UTC'), feed_range_days(s.range_start, s.range_end) FROM settled s
    ON CONFLICT DO NOTHING
), counted AS (
    UPDATE feed_state SET foreign_writes = foreign_writes + (SELECT count(*) FROM settled)
)
SELECT count(*) FROM settled;

-- FeedPurge deletes rows of feed_days and reading_deletions, and settled rows of foreign_writes. It keeps those of late
-- readings.
-- name: FeedPurge :exec
WITH writes AS (
    DELETE FROM foreign_writes
    WHERE transaction IS NULL
      AND (foreign_writes.effective_at = ingested_at OR foreign_writes.effective_at < @days_before::timestamptz
           OR range_start IS NULL)
), days AS (
    DELETE FROM feed_days WHERE written_at < @days_before::timestamptz
)
DELETE FROM reading_deletions WHERE reading_deletions.effective_at < @days_before::timestamptz;

-- The queries below serve the deletion of a range of readings by an operator.

-- FeedBeginDeletion begins the deletion of a range of readings, see schema/00007_feed.sql.
-- name: FeedBeginDeletion :one
SELECT feed_begin_deletion()::timestamptz AS effective_at;

-- ReadingDeletionInsert records a deletion for the feed and the audit log.
-- name: ReadingDeletionInsert :exec
INSERT INTO reading_deletions (team_id, effective_at, device_id, deleted_from, deleted_to, readings, samples)
SELECT d.team_id, @effective_at, d.id, @deleted_from, @deleted_to, @readings, @samples
FROM devices d WHERE d.id = @device_id;

-- ReadingDeletionCount counts the deletions of the team of a device that the feed still has.
-- name: ReadingDeletionCount :one
SELECT count(*) FROM reading_deletions x WHERE x.team_id = (SELECT d.team_id FROM devices d WHERE d.id = @device_id);
