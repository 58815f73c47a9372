-- StatsSet sets the parameters of statements that aggregate readings of devices by their ids. A generic plan reads the
-- hours of all devices in all chunks. PostgreSQL may expect a few hundred devices to be worth parallel workers.
-- name: StatsSet :exec
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('max_parallel_workers_per_gather', '0', true);

-- HourlySum aggregates hours of some devices of a team, with the columns of ReadingSum. Sums and counts have 64 bits, so
-- that means are exact (decision 17). Where a count is 0, the other values of that metric are meaningless.
-- name: HourlySum :many
SELECT h.device_id, false::boolean AS is_last,
       coalesce(min(h.co2_ppm_min), 0)::real AS co2_ppm_min,
       coalesce(max(h.co2_ppm_max), 0)::real AS co2_ppm_max,
       coalesce(sum(h.co2_ppm_count), 0)::bigint AS co2_ppm_count,
       coalesce(sum(h.co2_ppm_sum), 0)::double precision AS co2_ppm_sum,
       coalesce(min(h.temp_c_min), 0)::real AS temp_c_min,
       coalesce(max(h.temp_c_max), 0)::real AS temp_c_max,
       coalesce(sum(h.temp_c_count), 0)::bigint AS temp_c_count,
       coalesce(sum(h.temp_c_sum), 0)::double precision AS temp_c_sum,
       coalesce(min(h.humidity_pct_min), 0)::real AS humidity_pct_min,
       coalesce(max(h.humidity_pct_max), 0)::real AS humidity_pct_max,
       coalesce(sum(h.humidity_pct_count), 0)::bigint AS humidity_pct_count,
       coalesce(sum(h.humidity_pct_sum), 0)::double precision AS humidity_pct_sum,
       coalesce(min(h.lux_min), 0)::real AS lux_min,
       coalesce(max(h.lux_max), 0)::real AS lux_max,
       coalesce(sum(h.lux_count), 0)::bigint AS lux_count,
       coalesce(sum(h.lux_sum), 0)::double precision AS lux_sum,
       coalesce(min(h.spl_db_min), 0)::real AS spl_db_min,
       coalesce(max(h.spl_db_max), 0)::real AS spl_db_max,
       coalesce(sum(h.spl_db_count), 0)::bigint AS spl_db_count,
       coalesce(sum(h.spl_db_sum), 0)::double precision AS spl_db_sum
FROM readings_hourly h
WHERE h.device_id = ANY(@device_ids::uuid[])
  AND h.device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
  AND h.hour >= @hour_from::timestamptz
  AND h.hour < @hour_to::timestamptz
GROUP BY h.device_id;

-- ReadingSum aggregates the readings of a window per device of a team: those of the last hour, and those before it. Values
-- that are not finite are served as null and do not count: NaN, which sorts above infinity, and the infinities.
-- name: ReadingSum :many
SELECT r.device_id, (r.bucket_at >= @last_hour::timestamptz)::boolean AS is_last,
       coalesce(min(r.co2_ppm) FILTER (WHERE abs(r.co2_ppm) < 'Infinity'), 0)::real AS co2_ppm_min,
       coalesce(max(r.co2_ppm) FILTER (WHERE abs(r.co2_ppm) < 'Infinity'), 0)::real AS co2_ppm_max,
       (count(*) FILTER (WHERE abs(r.co2_ppm) < 'Infinity'))::bigint AS co2_ppm_count,
       coalesce(sum(r.co2_ppm::double precision) FILTER (WHERE abs(r.co2_ppm) < 'Infinity'), 0)::double precision AS co2_ppm_sum,
       coalesce(min(r.temp_c) FILTER (WHERE abs(r.temp_c) < 'Infinity'), 0)::real AS temp_c_min,
       coalesce(max(r.temp_c) FILTER (WHERE abs(r.temp_c) < 'Infinity'), 0)::real AS temp_c_max,
       (count(*) FILTER (WHERE abs(r.temp_c) < 'Infinity'))::bigint AS temp_c_count,
       coalesce(sum(r.temp_c::double precision) FILTER (WHERE abs(r.temp_c) < 'Infinity'), 0)::double precision AS temp_c_sum,
       coalesce(min(r.humidity_pct) FILTER (WHERE abs(r.humidity_pct) < 'Infinity'), 0)::real AS humidity_pct_min,
       coalesce(max(r.humidity_pct) FILTER (WHERE abs(r.humidity_pct) < 'Infinity'), 0)::real AS humidity_pct_max,
       (count(*) FILTER (WHERE abs(r.humidity_pct) < 'Infinity'))::bigint AS humidity_pct_count,
       coalesce(sum(r.humidity_pct::double precision) FILTER (WHERE abs(r.humidity_pct) < 'Infinity'), 0)::double precision AS humidity_pct_sum,
       coalesce(min(r.lux) FILTER (WHERE abs(r.lux) < 'Infinity'), 0)::real AS lux_min,
       coalesce(max(r.lux) FILTER (WHERE abs(r.lux) < 'Infinity'), 0)::real AS lux_max,
       (count(*) FILTER (WHERE abs(r.lux) < 'Infinity'))::bigint AS lux_count,
       coalesce(sum(r.lux::double precision) FILTER (WHERE abs(r.lux) < 'Infinity'), 0)::double precision AS lux_sum,
       coalesce(min(r.spl_db) FILTER (WHERE abs(r.spl_db) < 'Infinity'), 0)::real AS spl_db_min,
       coalesce(max(r.spl_db) FILTER (WHERE abs(r.spl_db) < 'Infinity'), 0)::real AS spl_db_max,
       (count(*) FILTER (WHERE abs(r.spl_db) < 'Infinity'))::bigint AS spl_db_count,
       coalesce(sum(r.spl_db::double precision) FILTER (WHERE abs(r.spl_db) < 'Infinity'), 0)::double precision AS spl_db_sum
FROM readings r
WHERE r.device_id = ANY(ARRAY(
      SELECT d.id FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])))
  AND r.bucket_at >= @hour_from::timestamptz
  AND r.bucket_at < @hour_to::timestamptz
GROUP BY r.device_id, is_last;

-- HourlyListValid lists the ranges of hours that readings_hourly has stored and that equal the readings, in ascending
-- order.
-- name: HourlyListValid :many
SELECT hours_from::timestamptz AS hours_from, hours_to::timestamptz AS hours_to
FROM readings_hourly_valid(@window_from::timestamptz, @window_to::timestamptz);

-- HourlyList reads hours of some devices, each named once, unordered. The store runs its text and decodes the rows in
-- binary.
-- name: HourlyList :many
SELECT h.device_id, h.hour, h.reading_count,
       h.co2_ppm_min, h.co2_ppm_max, h.co2_ppm_count, h.co2_ppm_sum,
       h.temp_c_min, h.temp_c_max, h.temp_c_count, h.temp_c_sum,
       h.humidity_pct_min, h.humidity_pct_max, h.humidity_pct_count, h.humidity_pct_sum,
       h.lux_min, h.lux_max, h.lux_count, h.lux_sum,
       h.spl_db_min, h.spl_db_max, h.spl_db_count, h.spl_db_sum
FROM readings_hourly h
WHERE h.device_id = ANY(@device_ids::uuid[])
  AND EXISTS (SELECT FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
              HAVING count(*) = cardinality(@device_ids::uuid[]))
  AND h.hour >= @hour_from::timestamptz
  AND h.hour < @hour_to::timestamptz;

-- HourlyCountBuckets counts the buckets of aggregates, given by their edges in ascending order, in which devices have
-- readings. Every edge must be the start of an hour.
-- name: HourlyCountBuckets :one
SELECT count(*) FROM (
    SELECT DISTINCT h.device_id, width_bucket(h.hour, @edges::timestamptz[])
    FROM readings_hourly h
    WHERE h.device_id = ANY(@device_ids::uuid[])
      AND EXISTS (SELECT FROM devices d WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
                  HAVING count(*) = cardinality(@device_ids::uuid[]))
      AND h.hour >= @hour_from::timestamptz
      AND h.hour < @hour_to::timestamptz
) buckets;
