-- The reading of a bucket that has samples is their mean (A13.3). A transaction that writes samples first locks the states of
-- their devices (DeviceStateLock), so that the next one sees all samples when it computes the mean.

-- DeviceStateLock locks the states of some devices in the order of their ids, as DeviceHeartbeatUpdate does.
-- name: DeviceStateLock :exec
SELECT device_id FROM device_state WHERE device_id = ANY (@device_ids::uuid[]) ORDER BY device_id FOR NO KEY UPDATE;

-- SampleBucketList returns those of some buckets that have samples. window_from and window_to enclose the buckets; they
-- exclude chunks.
-- name: SampleBucketList :many
SELECT b.device_id::uuid AS device_id, b.bucket_at::timestamptz AS bucket_at
FROM (SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@bucket_at::timestamptz[]) AS bucket_at) b
WHERE EXISTS (
    SELECT 1 FROM samples s
    WHERE s.device_id = b.device_id AND s.measured_at >= b.bucket_at AND s.measured_at < b.bucket_at + INTERVAL '5 minutes'
      AND s.measured_at >= @window_from::timestamptz AND s.measured_at < @window_to::timestamptz);

-- SampleAdopt makes a sample of the reading of each of some buckets without samples. Such a reading is from before the
-- first sample (A13.4). In a bucket with samples, the reading has the time of the last one, so that nothing is inserted.
-- name: SampleAdopt :exec
INSERT INTO samples (device_id, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
SELECT r.device_id, coalesce(r.measured_at, r.bucket_at), r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db
FROM (SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@bucket_at::timestamptz[]) AS bucket_at) b
JOIN readings r ON r.device_id = b.device_id AND r.bucket_at = b.bucket_at
    AND r.bucket_at >= @window_from::timestamptz AND r.bucket_at < @window_to::timestamptz
ON CONFLICT DO NOTHING;

-- SampleUpsert writes sorted samples. Two deliveries of the same sample are merged per metric, where greatest() ignores nulls
-- (decision 37 d and e). valid_mask tells which metrics are present.
-- name: SampleUpsert :exec
INSERT INTO samples AS s (device_id, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
SELECT n.device_id, n.measured_at,
       CASE WHEN n.valid_mask & 1 <> 0 THEN n.co2_ppm END,
       CASE WHEN n.valid_mask & 2 <> 0 THEN n.temp_c END,
       CASE WHEN n.valid_mask & 4 <> 0 THEN n.humidity_pct END,
       CASE WHEN n.valid_mask & 8 <> 0 THEN n.lux END,
       CASE WHEN n.valid_mask & 16 <> 0 THEN n.spl_db END
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id,
           unnest(@measured_at::timestamptz[]) AS measured_at,
           unnest(@valid_mask::smallint[]) AS valid_mask,
           unnest(@co2_ppm::real[]) AS co2_ppm,
           unnest(@temp_c::real[]) AS temp_c,
           unnest(@humidity_pct::real[]) AS humidity_pct,
           unnest(@lux::real[]) AS lux,
           unnest(@spl_db::real[]) AS spl_db
) n
ON CONFLICT (device_id, measured_at) DO UPDATE
SET co2_ppm = greatest(s.co2_ppm, excluded.co2_ppm), temp_c = greatest(s.temp_c, excluded.temp_c),
    humidity_pct = greatest(s.humidity_pct, excluded.humidity_pct), lux = greatest(s.lux, excluded.lux),
    spl_db = greatest(s.spl_db, excluded.spl_db)
WHERE (greatest(s.co2_ppm, excluded.co2_ppm), greatest(s.temp_c, excluded.temp_c),
       greatest(s.humidity_pct, excluded.humidity_pct), greatest(s.lux, excluded.lux), greatest(s.spl_db, excluded.spl_db))
      IS DISTINCT FROM (s.co2_ppm, s.temp_c, s.humidity_pct, s.lux, s.spl_db);

-- ReadingUpsertMean writes the readings of some sorted buckets that have samples, and returns how many changed. The order of
-- the samples makes the sum the same for every order of their arrivals: double precision rounds it.
-- name: ReadingUpsertMean :execrows
INSERT INTO readings AS r (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at)
SELECT b.device_id, b.bucket_at, m.co2_ppm, m.temp_c, m.humidity_pct, m.lux, m.spl_db, m.measured_at,
       (SELECT current_setting('roomsensor.ingested_at')::timestamptz)
FROM (SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@bucket_at::timestamptz[]) AS bucket_at) b
CROSS JOIN LATERAL (
    SELECT avg(s.co2_ppm ORDER BY s.measured_at)::real AS co2_ppm, avg(s.temp_c ORDER BY s.measured_at)::real AS temp_c,
           avg(s.humidity_pct ORDER BY s.measured_at)::real AS humidity_pct, avg(s.lux ORDER BY s.measured_at)::real AS lux,
           avg(s.spl_db ORDER BY s.measured_at)::real AS spl_db, max(s.measured_at) AS measured_at
    FROM samples s
    WHERE s.device_id = b.device_id AND s.measured_at >= b.bucket_at AND s.measured_at < b.bucket_at + INTERVAL '5 minutes'
      AND s.measured_at >= @window_from::timestamptz AND s.measured_at < @window_to::timestamptz
) m
ON CONFLICT (device_id, bucket_at) DO UPDATE
SET co2_ppm = excluded.co2_ppm, temp_c = excluded.temp_c, humidity_pct = excluded.humidity_pct, lux = excluded.lux,
    spl_db = excluded.spl_db, measured_at = excluded.measured_at,
    ingested_at = CASE WHEN (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db)
            IS DISTINCT FROM (excluded.co2_ppm, excluded.temp_c, excluded.humidity_pct, excluded.lux, excluded.spl_db)
        THEN excluded.ingested_at ELSE r.ingested_at END
WHERE (r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.measured_at)
    IS DISTINCT FROM (excluded.co2_ppm, excluded.temp_c, excluded.humidity_pct, excluded.lux, excluded.spl_db,
                      excluded.measured_at);

-- DeviceSamplingList lists the devices of a team whose readings are means.
-- name: DeviceSamplingList :many
SELECT id FROM devices WHERE team_id = @team_id AND sampling = 'mean';

-- DeviceSetSampling changes what becomes of the measurements that arrive afterwards.
-- name: DeviceSetSampling :exec
UPDATE devices SET sampling = CASE WHEN @mean::boolean THEN 'mean' WHEN sampling = 'whole' THEN 'whole' ELSE 'was_mean' END
WHERE team_id = @team_id AND id = @device_id;

-- DeviceSetSampled tells workers that read the sampling before a change that the device may have samples.
-- name: DeviceSetSampled :exec
UPDATE device_state SET sampled = true
WHERE device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = @device_id);

-- The query below serves the operator's commands, which work on all teams.

-- SampleDeleteByDevice deletes all samples of a device.
-- name: SampleDeleteByDevice :exec
DELETE FROM samples WHERE device_id = @device_id;
