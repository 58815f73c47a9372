-- +goose Up

-- ensure_readings_hourly is that of 00002_readings.sql, with reading_count: the readings of an hour, also those without
-- any value. On the Community edition, the refresh policy computes all hours again; until then they are computed from
-- the readings.
-- +goose StatementBegin
CREATE OR REPLACE PROCEDURE ensure_readings_hourly()
LANGUAGE plpgsql AS $procedure$
DECLARE
    community constant boolean := current_setting('timescaledb.license') = 'timescale';
    is_aggregate boolean;
    definition constant text := $query$
        SELECT device_id,
               time_bucket('1 hour', bucket_at) AS hour,
               count(*) AS reading_count,
               min(co2_ppm) AS co2_ppm_min,
               max(co2_ppm) AS co2_ppm_max,
               count(co2_ppm) AS co2_ppm_count,
               sum(co2_ppm::double precision) AS co2_ppm_sum,
               min(temp_c) AS temp_c_min,
               max(temp_c) AS temp_c_max,
               count(temp_c) AS temp_c_count,
               sum(temp_c::double precision) AS temp_c_sum,
               min(humidity_pct) AS humidity_pct_min,
               max(humidity_pct) AS humidity_pct_max,
               count(humidity_pct) AS humidity_pct_count,
               sum(humidity_pct::double precision) AS humidity_pct_sum,
               min(lux) AS lux_min,
               max(lux) AS lux_max,
               count(lux) AS lux_count,
               sum(lux::double precision) AS lux_sum,
               min(spl_db) AS spl_db_min,
               max(spl_db) AS spl_db_max,
               count(spl_db) AS spl_db_count,
               sum(spl_db::double precision) AS spl_db_sum
        FROM readings
        GROUP BY device_id, time_bucket('1 hour', bucket_at)
    $query$;
BEGIN
    -- Concurrent calls wait for one another. The number is arbitrary and shared with ensure_readings_layout.
    PERFORM pg_advisory_xact_lock(7283400021);
    is_aggregate := EXISTS (
        SELECT FROM timescaledb_information.continuous_aggregates
        WHERE view_schema = 'public' AND view_name = 'readings_hourly');
    IF NOT community THEN
        IF to_regclass('public.readings_hourly') IS NULL THEN
            EXECUTE 'CREATE VIEW readings_hourly AS ' || definition;
        END IF;
        RETURN;
    END IF;
    IF NOT is_aggregate THEN
        DROP VIEW IF EXISTS readings_hourly;
        EXECUTE 'CREATE MATERIALIZED VIEW readings_hourly '
            'WITH (timescaledb.continuous, timescaledb.materialized_only = false) AS '
            || definition || ' WITH NO DATA';
    END IF;
    -- The last two days are never materialized, so that last_24h is computed from the readings themselves and is exact
    -- right after a late upload. There is no start offset, so that late uploads of any age are refreshed.
    PERFORM add_continuous_aggregate_policy('readings_hourly',
        start_offset => NULL, end_offset => INTERVAL '2 days',
        schedule_interval => INTERVAL '1 hour', if_not_exists => true);
END
$procedure$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM timescaledb_information.continuous_aggregates
               WHERE view_schema = 'public' AND view_name = 'readings_hourly') THEN
        DROP MATERIALIZED VIEW readings_hourly;
    ELSE
        DROP VIEW readings_hourly;
    END IF;
END
$$;
-- +goose StatementEnd
CALL ensure_readings_hourly();

-- readings_hourly_valid returns the hours of a window that readings_hourly has stored and that equal the readings, as
-- ranges in ascending order: those before the watermark of the aggregate into which nobody wrote since they were
-- computed. TimescaleDB logs the range of each transaction that writes below the watermark, and moves it on until a
-- refresh has computed it again. All three tables are read from one snapshot, so that a snapshot that has a reading has
-- its range too. A plain view stores no hours. Neither does an aggregate of a version of TimescaleDB that has other
-- tables.
-- +goose StatementBegin
CREATE FUNCTION readings_hourly_valid(window_from timestamptz, window_to timestamptz)
RETURNS TABLE (hours_from timestamptz, hours_to timestamptz)
STABLE LANGUAGE plpgsql AS $function$
DECLARE
    hour constant bigint := 3600000000; -- microseconds
    aggregate integer;
    source integer;
    valid int8range;
    logs text;
BEGIN
    SELECT mat_hypertable_id, raw_hypertable_id INTO aggregate, source
    FROM _timescaledb_catalog.continuous_agg
    WHERE user_view_schema = 'public' AND user_view_name = 'readings_hourly';
    IF NOT FOUND OR to_regclass('_timescaledb_catalog.continuous_aggs_watermark') IS NULL
       OR to_regclass('_timescaledb_catalog.continuous_aggs_hypertable_invalidation_log') IS NULL
       OR to_regclass('_timescaledb_catalog.continuous_aggs_materialization_invalidation_log') IS NULL THEN
        RETURN;
    END IF;
    SELECT int8range(w.since, greatest(w.since, least(w.until, m.watermark))) INTO valid
    FROM _timescaledb_catalog.continuous_aggs_watermark m,
         (SELECT ceil(extract(epoch FROM window_from) / 3600)::bigint * hour AS since,
                 floor(extract(epoch FROM window_to) / 3600)::bigint * hour AS until) w
    WHERE m.mat_hypertable_id = aggregate AND w.since <= w.until;
    IF NOT FOUND OR isempty(valid) THEN
        RETURN;
    END IF;
    logs := 'SELECT lowest_modified_value AS lowest, greatest_modified_value AS greatest
        FROM _timescaledb_catalog.continuous_aggs_hypertable_invalidation_log WHERE hypertable_id = $1
        UNION ALL SELECT lowest_modified_value, greatest_modified_value
        FROM _timescaledb_catalog.continuous_aggs_materialization_invalidation_log WHERE materialization_id = $2';
    -- A refresh of newer versions moves a range here before it computes it.
    IF to_regclass('_timescaledb_catalog.continuous_aggs_materialization_ranges') IS NOT NULL THEN
        logs := logs || ' UNION ALL SELECT lowest_modified_value, greatest_modified_value
            FROM _timescaledb_catalog.continuous_aggs_materialization_ranges WHERE materialization_id = $2';
    END IF;
    -- Both ends of a logged range are included. It is extended to whole hours: lower(valid) is a multiple of an hour.
    RETURN QUERY EXECUTE format('
        SELECT to_timestamp(lower(r) / 1000000), to_timestamp(upper(r) / 1000000)
        FROM unnest(int8multirange($3) - coalesce((
            SELECT range_agg(int8range(w.first, w.last, ''[]'')) FROM (
                SELECT DISTINCT lower($3) + (greatest(l.lowest, lower($3)) - lower($3)) / $4 * $4 AS first,
                       lower($3) + ((least(l.greatest, upper($3)) - lower($3)) / $4 + 1) * $4 - 1 AS last
                FROM (%s) l
                WHERE l.lowest < upper($3) AND l.greatest >= lower($3) AND l.lowest <= l.greatest
            ) w
        ), ''{}'')) r', logs)
    USING source, aggregate, valid, hour;
END
$function$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION readings_hourly_valid(timestamptz, timestamptz);
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM timescaledb_information.continuous_aggregates
               WHERE view_schema = 'public' AND view_name = 'readings_hourly') THEN
        DROP MATERIALIZED VIEW readings_hourly;
    ELSE
        DROP VIEW readings_hourly;
    END IF;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE PROCEDURE ensure_readings_hourly()
LANGUAGE plpgsql AS $procedure$
DECLARE
    community constant boolean := current_setting('timescaledb.license') = 'timescale';
    is_aggregate boolean;
    definition constant text := $query$
        SELECT device_id,
               time_bucket('1 hour', bucket_at) AS hour,
               min(co2_ppm) AS co2_ppm_min,
               max(co2_ppm) AS co2_ppm_max,
               count(co2_ppm) AS co2_ppm_count,
               sum(co2_ppm::double precision) AS co2_ppm_sum,
               min(temp_c) AS temp_c_min,
               max(temp_c) AS temp_c_max,
               count(temp_c) AS temp_c_count,
               sum(temp_c::double precision) AS temp_c_sum,
               min(humidity_pct) AS humidity_pct_min,
               max(humidity_pct) AS humidity_pct_max,
               count(humidity_pct) AS humidity_pct_count,
               sum(humidity_pct::double precision) AS humidity_pct_sum,
               min(lux) AS lux_min,
               max(lux) AS lux_max,
               count(lux) AS lux_count,
               sum(lux::double precision) AS lux_sum,
               min(spl_db) AS spl_db_min,
               max(spl_db) AS spl_db_max,
               count(spl_db) AS spl_db_count,
               sum(spl_db::double precision) AS spl_db_sum
        FROM readings
        GROUP BY device_id, time_bucket('1 hour', bucket_at)
    $query$;
BEGIN
    -- Concurrent calls wait for one another. The number is arbitrary and shared with ensure_readings_layout.
    PERFORM pg_advisory_xact_lock(7283400021);
    is_aggregate := EXISTS (
        SELECT FROM timescaledb_information.continuous_aggregates
        WHERE view_schema = 'public' AND view_name = 'readings_hourly');
    IF NOT community THEN
        IF to_regclass('public.readings_hourly') IS NULL THEN
            EXECUTE 'CREATE VIEW readings_hourly AS ' || definition;
        END IF;
        RETURN;
    END IF;
    IF NOT is_aggregate THEN
        DROP VIEW IF EXISTS readings_hourly;
        EXECUTE 'CREATE MATERIALIZED VIEW readings_hourly '
            'WITH (timescaledb.continuous, timescaledb.materialized_only = false) AS '
            || definition || ' WITH NO DATA';
    END IF;
    -- The last two days are never materialized, so that last_24h is computed from the readings themselves and is exact
    -- right after a late upload. There is no start offset, so that late uploads of any age are refreshed.
    PERFORM add_continuous_aggregate_policy('readings_hourly',
        start_offset => NULL, end_offset => INTERVAL '2 days',
        schedule_interval => INTERVAL '1 hour', if_not_exists => true);
END
$procedure$;
-- +goose StatementEnd
CALL ensure_readings_hourly();
