-- ReadingList reads a page of a device's readings, the newest first. The store runs its text.
-- name: ReadingList :many
SELECT r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM readings r
WHERE r.device_id = @device_id
  AND EXISTS (SELECT FROM devices d WHERE d.id = @device_id AND d.team_id = @team_id)
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
ORDER BY r.bucket_at DESC
LIMIT @most::bigint;

-- ReadingBucketList reads the buckets of a device's readings, the newest first.
-- name: ReadingBucketList :many
SELECT r.bucket_at
FROM readings r
WHERE r.device_id = @device_id
  AND EXISTS (SELECT FROM devices d WHERE d.id = @device_id AND d.team_id = @team_id)
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
ORDER BY r.bucket_at DESC
LIMIT @most::bigint;

-- ReadingLateList lists when readings of a device arrived more than after_seconds after they were measured: the parts of
-- a width in which there are such readings, and the longest delay in each, at most 31 years. Both times may be infinite.
-- name: ReadingLateList :many
SELECT date_bin(make_interval(secs => @width_seconds::double precision), r.bucket_at, '2000-01-01 00:00:00Z')::timestamptz AS part_from,
       least(1e9, max(extract(epoch FROM least(r.ingested_at, '9999-12-31 00:00:00Z'))
                      - extract(epoch FROM greatest(coalesce(r.measured_at, r.bucket_at), '0001-01-01 00:00:00Z'))))::double precision AS delay_seconds
FROM readings r
WHERE r.device_id = @device_id
  AND EXISTS (SELECT FROM devices d WHERE d.id = @device_id AND d.team_id = @team_id)
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
  AND r.ingested_at > coalesce(r.measured_at, r.bucket_at) + make_interval(secs => @after_seconds::double precision)
GROUP BY part_from
ORDER BY part_from;

-- ReadingMaskList reads which metrics the readings of some devices have, as valid_mask, unordered. The store runs its
-- text and decodes the rows in binary. A value that is not finite is served as null; NaN sorts above infinity.
-- name: ReadingMaskList :many
SELECT r.device_id, r.bucket_at,
       (CASE WHEN abs(r.co2_ppm) < 'Infinity' THEN 1 ELSE 0 END
        + CASE WHEN abs(r.temp_c) < 'Infinity' THEN 2 ELSE 0 END
        + CASE WHEN abs(r.humidity_pct) < 'Infinity' THEN 4 ELSE 0 END
        + CASE WHEN abs(r.lux) < 'Infinity' THEN 8 ELSE 0 END
        + CASE WHEN abs(r.spl_db) < 'Infinity' THEN 16 ELSE 0 END)::smallint AS valid_mask
FROM readings r
WHERE r.device_id = ANY(ARRAY(
      SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
  AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
      AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at));

-- ReadingExport reads a slice of the rows of an export, unordered. The store runs its text and decodes the rows in binary.
-- Like the counts below, it selects those of the devices that belong to the team in an array, which is evaluated once. A
-- join would check every row, and a condition beside the array makes every row pass two more nodes of the plan. With an
-- external_ref it has only what was measured during the assignments with that reference (A18.2); a null one costs nothing,
-- because the plan is custom.
-- name: ReadingExport :many
SELECT r.device_id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db
FROM readings r
WHERE r.device_id = ANY(ARRAY(
      SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
  AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
      AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at));

-- ReadingExportIngested is ReadingExport with ingested_at.
-- name: ReadingExportIngested :many
SELECT r.device_id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM readings r
WHERE r.device_id = ANY(ARRAY(
      SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
  AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
      AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at));

-- ReadingCount counts rows and stops at most.
-- name: ReadingCount :one
SELECT count(*) FROM (
    SELECT FROM readings r
    WHERE r.device_id = ANY(ARRAY(
          SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
      AND r.bucket_at >= @window_from::timestamptz
      AND r.bucket_at < @window_to::timestamptz
      AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
          SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
          AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at))
    LIMIT @most::bigint
) counted;

-- ReadingCountLines counts rows, stopping at most, and their buckets, which are the lines of a wide export, in one pass
-- (count(DISTINCT) would sort the rows). It also returns the first and the last bucket.
-- name: ReadingCountLines :one
SELECT coalesce(sum(l.rows), 0)::bigint AS rows, count(*) AS lines,
       coalesce(min(l.bucket_at), @window_from)::timestamptz AS first_at,
       coalesce(max(l.bucket_at), @window_from)::timestamptz AS last_at
FROM (
    SELECT c.bucket_at, count(*) AS rows
    FROM (
        SELECT r.bucket_at FROM readings r
        WHERE r.device_id = ANY(ARRAY(
              SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
          AND r.bucket_at >= @window_from::timestamptz
          AND r.bucket_at < @window_to::timestamptz
          AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
              SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
              AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at))
        LIMIT @most::bigint
    ) c
    GROUP BY c.bucket_at
) l;

-- ReadingFit finds the longest window that has room for some rows: it ends at fits_until, the first bucket with which
-- there would be more, or window_to. It counts at most a number of rows; if there are more, only a window of one bucket
-- has a valid fits_until.
-- name: ReadingFit :one
SELECT coalesce(sum(b.rows), 0)::bigint AS rows,
       coalesce(min(b.bucket_at) FILTER (WHERE b.rows_until > @room::bigint), @window_to)::timestamptz AS fits_until
FROM (
    SELECT c.bucket_at, count(*) AS rows, sum(count(*)) OVER (ORDER BY c.bucket_at) AS rows_until
    FROM (
        SELECT r.bucket_at FROM readings r
        WHERE r.device_id = ANY(ARRAY(
              SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
          AND r.bucket_at >= @window_from::timestamptz
          AND r.bucket_at < @window_to::timestamptz
          AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
              SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
              AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at))
        LIMIT @most::bigint
    ) c
    GROUP BY c.bucket_at
) b;

-- ReadingCountBuckets counts the buckets of aggregates, given by their edges in ascending order, in which devices have
-- readings.
-- name: ReadingCountBuckets :one
SELECT count(*) FROM (
    SELECT DISTINCT r.device_id, width_bucket(r.bucket_at, @edges::timestamptz[])
    FROM readings r
    WHERE r.device_id = ANY(ARRAY(
          SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
      AND r.bucket_at >= @window_from::timestamptz
      AND r.bucket_at < @window_to::timestamptz
      AND (sqlc.narg(external_ref)::text IS NULL OR EXISTS (
          SELECT FROM assignments a WHERE a.device_id = r.device_id AND a.external_ref = sqlc.narg(external_ref)
          AND tstzrange(a.started_at, a.ended_at) @> r.bucket_at))
) buckets;

-- ReadingListParts reads the readings of single devices in parts of a window, unordered. The subquery with OFFSET makes
-- it descend the primary key once per part. The store runs its text, so that no rows are generated.
-- name: ReadingListParts :exec
SELECT p.device_id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id,
           unnest(@part_from::timestamptz[]) AS part_from,
           unnest(@part_to::timestamptz[]) AS part_to
) p
CROSS JOIN LATERAL (
    SELECT readings.* FROM readings
    WHERE readings.device_id = p.device_id
      AND readings.bucket_at >= p.part_from AND readings.bucket_at < p.part_to
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
    OFFSET 0
) r
WHERE p.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id);

-- ReadingGetExtent returns the first and the last bucket that an export selects. It descends the primary key twice per
-- device; an aggregate would read all rows once more.
-- name: ReadingGetExtent :one
SELECT min(a.bucket_at)::timestamptz AS first_at, max(z.bucket_at)::timestamptz AS last_at
FROM devices d
CROSS JOIN LATERAL (
    SELECT readings.bucket_at FROM readings
    WHERE readings.device_id = d.id
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
    ORDER BY readings.bucket_at LIMIT 1
) a
CROSS JOIN LATERAL (
    SELECT readings.bucket_at FROM readings
    WHERE readings.device_id = d.id
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
    ORDER BY readings.bucket_at DESC LIMIT 1
) z
WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[]);

-- ReadingUpsert writes merged, sorted measurements (late-merge rule, decisions 37 and 38). It is roomsensor.Merge in
-- SQL: the later measurement replaces the reading as a whole; two deliveries of the same measurement are merged per
-- metric, where greatest() ignores nulls. A row that would not change is not written, and ingested_at changes only
-- together with one of the metrics. valid_mask tells which metrics are present, so that the arrays need no nulls. The
-- time of the write is that of FeedBegin.
-- name: ReadingUpsert :execrows
INSERT INTO readings AS r (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at)
SELECT n.device_id, n.bucket_at,
       CASE WHEN n.valid_mask & 1 <> 0 THEN n.co2_ppm END,
       CASE WHEN n.valid_mask & 2 <> 0 THEN n.temp_c END,
       CASE WHEN n.valid_mask & 4 <> 0 THEN n.humidity_pct END,
       CASE WHEN n.valid_mask & 8 <> 0 THEN n.lux END,
       CASE WHEN n.valid_mask & 16 <> 0 THEN n.spl_db END,
       n.measured_at, (SELECT current_setting('roomsensor.ingested_at')::timestamptz)
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id,
           unnest(@bucket_at::timestamptz[]) AS bucket_at,
           unnest(@measured_at::timestamptz[]) AS measured_at,
           unnest(@valid_mask::smallint[]) AS valid_mask,
           unnest(@co2_ppm::real[]) AS co2_ppm,
           unnest(@temp_c::real[]) AS temp_c,
           unnest(@humidity_pct::real[]) AS humidity_pct,
           unnest(@lux::real[]) AS lux,
           unnest(@spl_db::real[]) AS spl_db
) n
ON CONFLICT (device_id, bucket_at) DO UPDATE
SET (co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at) = (
    SELECT m.co2_ppm, m.temp_c, m.humidity_pct, m.lux, m.spl_db, excluded.measured_at,
           CASE WHEN (m.co2_ppm, m.temp_c, m.humidity_pct, m.lux, m.spl_db)
                     IS DISTINCT FROM (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db)
                THEN excluded.ingested_at ELSE r.ingested_at END
    FROM (
        SELECT CASE WHEN later THEN excluded.co2_ppm ELSE greatest(r.co2_ppm, excluded.co2_ppm) END,
               CASE WHEN later THEN excluded.temp_c ELSE greatest(r.temp_c, excluded.temp_c) END,
               CASE WHEN later THEN excluded.humidity_pct ELSE greatest(r.humidity_pct, excluded.humidity_pct) END,
               CASE WHEN later THEN excluded.lux ELSE greatest(r.lux, excluded.lux) END,
               CASE WHEN later THEN excluded.spl_db ELSE greatest(r.spl_db, excluded.spl_db) END
        FROM (SELECT excluded.measured_at > coalesce(r.measured_at, r.bucket_at) AS later) t
    ) m (co2_ppm, temp_c, humidity_pct, lux, spl_db))
WHERE excluded.measured_at > coalesce(r.measured_at, r.bucket_at)
   OR (excluded.measured_at = coalesce(r.measured_at, r.bucket_at)
       AND (greatest(r.co2_ppm, excluded.co2_ppm), greatest(r.temp_c, excluded.temp_c),
            greatest(r.humidity_pct, excluded.humidity_pct), greatest(r.lux, excluded.lux),
            greatest(r.spl_db, excluded.spl_db))
           IS DISTINCT FROM (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db));

-- ReadingUpsertIncoming is ReadingUpsert of the rows that were copied into reading_incoming. Arrays are faster for few
-- rows, COPY for many. A transaction that reads a temporary table empties it when it commits, so that few rows must not
-- pay for it.
-- name: ReadingUpsertIncoming :execrows
INSERT INTO readings AS r (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at)
SELECT device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at,
       (SELECT current_setting('roomsensor.ingested_at')::timestamptz)
FROM reading_incoming
ON CONFLICT (device_id, bucket_at) DO UPDATE
SET (co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at) = (
    SELECT m.co2_ppm, m.temp_c, m.humidity_pct, m.lux, m.spl_db, excluded.measured_at,
           CASE WHEN (m.co2_ppm, m.temp_c, m.humidity_pct, m.lux, m.spl_db)
                     IS DISTINCT FROM (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db)
                THEN excluded.ingested_at ELSE r.ingested_at END
    FROM (
        SELECT CASE WHEN later THEN excluded.co2_ppm ELSE greatest(r.co2_ppm, excluded.co2_ppm) END,
               CASE WHEN later THEN excluded.temp_c ELSE greatest(r.temp_c, excluded.temp_c) END,
               CASE WHEN later THEN excluded.humidity_pct ELSE greatest(r.humidity_pct, excluded.humidity_pct) END,
               CASE WHEN later THEN excluded.lux ELSE greatest(r.lux, excluded.lux) END,
               CASE WHEN later THEN excluded.spl_db ELSE greatest(r.spl_db, excluded.spl_db) END
        FROM (SELECT excluded.measured_at > coalesce(r.measured_at, r.bucket_at) AS later) t
    ) m (co2_ppm, temp_c, humidity_pct, lux, spl_db))
WHERE excluded.measured_at > coalesce(r.measured_at, r.bucket_at)
   OR (excluded.measured_at = coalesce(r.measured_at, r.bucket_at)
       AND (greatest(r.co2_ppm, excluded.co2_ppm), greatest(r.temp_c, excluded.temp_c),
            greatest(r.humidity_pct, excluded.humidity_pct), greatest(r.lux, excluded.lux),
            greatest(r.spl_db, excluded.spl_db))
           IS DISTINCT FROM (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db));

-- ReadingIsNew reports whether none of some devices has a reading between its first_at and its last_at, both included,
-- and the time of the write is now(), which ReadingCopy sets. window_from and window_to must enclose all of them; they
-- exclude chunks.
-- name: ReadingIsNew :one
SELECT (current_setting('roomsensor.ingested_at')::timestamptz = now() AND NOT EXISTS (
    SELECT FROM (
        SELECT unnest(@device_ids::uuid[]) AS device_id,
               unnest(@first_at::timestamptz[]) AS first_at,
               unnest(@last_at::timestamptz[]) AS last_at
    ) n
    CROSS JOIN LATERAL (
        SELECT FROM readings r
        WHERE r.device_id = n.device_id AND r.bucket_at >= n.first_at AND r.bucket_at <= n.last_at
          AND r.bucket_at >= @window_from::timestamptz AND r.bucket_at <= @window_to::timestamptz
        LIMIT 1
    ) taken
))::boolean AS is_new;

-- The queries below serve deletions by an operator.

-- ReadingCountRange counts the readings of a device within a window, with the first and the last bucket, and the
-- samples.
-- name: ReadingCountRange :one
SELECT count(*) AS readings, coalesce(min(bucket_at), @window_from)::timestamptz AS first_at,
       coalesce(max(bucket_at), @window_from)::timestamptz AS last_at,
       (SELECT count(*) FROM samples s WHERE s.device_id = @device_id
        AND s.measured_at >= @window_from::timestamptz AND s.measured_at < @window_to::timestamptz) AS samples
FROM readings
WHERE device_id = @device_id AND bucket_at >= @window_from::timestamptz AND bucket_at < @window_to::timestamptz;

-- ReadingGetFirst returns the first bucket of a device since a time.
-- name: ReadingGetFirst :one
SELECT bucket_at FROM readings
WHERE device_id = @device_id AND bucket_at >= @since::timestamptz
ORDER BY bucket_at LIMIT 1;

-- ReadingDeleteByDevice deletes all readings of a device.
-- name: ReadingDeleteByDevice :execrows
DELETE FROM readings WHERE device_id = @device_id;

-- ReadingDeleteRange deletes the readings of a device within a window, with their samples, and reads its newest reading
-- again.
-- name: ReadingDeleteRange :one
SELECT x.deleted_readings::bigint AS readings, x.deleted_samples::bigint AS samples
FROM delete_readings(@device_id::uuid, @window_from::timestamptz, @window_to::timestamptz) x;

-- ReadingSetArrival records that readings of a device arrived half a minute after they were measured, but not before a
-- time, unless they arrived earlier still. The demo calls it for the history that it makes up.
-- name: ReadingSetArrival :exec
UPDATE readings
SET ingested_at = least(ingested_at, greatest(measured_at + interval '30 seconds', @not_before::timestamptz))
WHERE device_id = @device_id AND bucket_at >= @window_from::timestamptz AND bucket_at < @window_to::timestamptz;

-- ReadingCopy copies new rows in PostgreSQL's binary format. A row that exists already fails it.
-- name: ReadingCopy :exec
COPY readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
FROM STDIN (FORMAT binary);

-- ReadingIncomingCreate creates the table into which a connection copies rows before it upserts them, unless the session
-- has it. A temporary table is not logged, and ON COMMIT empties it after every transaction. A scan returns its rows in
-- the order of the copy.
-- name: ReadingIncomingCreate :exec
CREATE TEMPORARY TABLE IF NOT EXISTS reading_incoming (
    device_id    uuid NOT NULL,
    bucket_at    timestamptz NOT NULL,
    measured_at  timestamptz NOT NULL,
    co2_ppm      real,
    temp_c       real,
    humidity_pct real,
    lux          real,
    spl_db       real
) ON COMMIT DELETE ROWS;

-- ReadingIncomingCopy copies rows in PostgreSQL's binary format.
-- name: ReadingIncomingCopy :exec
COPY reading_incoming (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
FROM STDIN (FORMAT binary);
