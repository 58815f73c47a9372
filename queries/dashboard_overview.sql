-- ReadingHourlyCO2List reads the mean CO2 of some devices, each named once, in each hour of a window that begins with an
-- hour. It aggregates one metric of the readings, because readings_hourly would aggregate all of them. The devices are not
-- an array of those of the team, as in ReadingExport: PostgreSQL expects ten in an array, and would sort the readings of a
-- thousand. The store runs its text and decodes the rows in binary.
-- name: ReadingHourlyCO2List :many
SELECT r.device_id, date_bin('1 hour', r.bucket_at, @window_from::timestamptz)::timestamptz AS hour,
       avg(r.co2_ppm)::real AS co2_ppm
FROM readings r
WHERE r.device_id = ANY(@device_ids::uuid[])
  AND EXISTS (SELECT FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
              HAVING count(*) = cardinality(@device_ids::uuid[]))
  AND r.bucket_at >= @window_from::timestamptz
  AND r.bucket_at < @window_to::timestamptz
  AND abs(r.co2_ppm) < 'Infinity'
GROUP BY r.device_id, hour;

-- ReadingOlderValueList reads the newest values of metrics, given by their numbers, that devices of the team have in a
-- window each. All of these are in one window, which excludes chunks.
-- name: ReadingOlderValueList :many
SELECT n.device_id::uuid AS device_id, n.metric::integer AS metric, r.bucket_at, r.value::real AS value
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@metrics::integer[]) AS metric,
           unnest(@since::timestamptz[]) AS since, unnest(@before::timestamptz[]) AS before
) n
JOIN devices d ON d.id = n.device_id
CROSS JOIN LATERAL (
    SELECT readings.bucket_at, (ARRAY[co2_ppm, temp_c, humidity_pct, lux, spl_db])[n.metric + 1] AS value FROM readings
    WHERE readings.device_id = n.device_id
      AND readings.bucket_at >= n.since AND readings.bucket_at < n.before
      AND readings.bucket_at >= @window_from::timestamptz AND readings.bucket_at < @window_to::timestamptz
      AND abs((ARRAY[co2_ppm, temp_c, humidity_pct, lux, spl_db])[n.metric + 1]) < 'Infinity'
    ORDER BY readings.bucket_at DESC LIMIT 1
) r
WHERE d.team_id = @team_id;
