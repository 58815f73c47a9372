-- +goose Up

-- ensure_readings_hourly creates readings_hourly: a real-time continuous aggregate on the Community edition of
-- TimescaleDB, and a plain view with the same columns on the Apache edition. It may be called at any time, and every
-- `migrate up` calls it, because an installation may change from Apache to Community later. schema/sqlc/stubs.sql lists
-- the columns: the minimum, maximum, count and sum of each metric, and reading_count, which also counts readings without
-- any value.
--
-- The values are summed as double precision, because a sum of real loses precision from the third digit on.
-- +goose StatementBegin
CREATE PROCEDURE ensure_readings_hourly()
LANGUAGE plpgsql AS $procedure$
DECLARE
    definition constant text := format(
        'SELECT device_id, time_bucket(''1 hour'', bucket_at) AS hour, count(*) AS reading_count, %s
         FROM readings GROUP BY device_id, time_bucket(''1 hour'', bucket_at)',
        (SELECT string_agg(format('min(%1$I) AS %1$I_min, max(%1$I) AS %1$I_max, count(%1$I) AS %1$I_count,
                                   sum(%1$I::double precision) AS %1$I_sum', metric), ', ' ORDER BY place)
         FROM unnest(ARRAY['co2_ppm', 'temp_c', 'humidity_pct', 'lux', 'spl_db']) WITH ORDINALITY m (metric, place)));
BEGIN
    PERFORM pg_advisory_xact_lock(lock_key('edition'));
    IF current_setting('timescaledb.license') <> 'timescale' THEN
        IF to_regclass('public.readings_hourly') IS NULL THEN
            EXECUTE 'CREATE VIEW readings_hourly AS ' || definition;
        END IF;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM timescaledb_information.continuous_aggregates
                   WHERE view_schema = 'public' AND view_name = 'readings_hourly') THEN
        DROP VIEW IF EXISTS readings_hourly;
        EXECUTE 'CREATE MATERIALIZED VIEW readings_hourly '
            'WITH (timescaledb.continuous, timescaledb.materialized_only = false) AS '
            || definition || ' WITH NO DATA';
    END IF;
    -- A refresh stores the hours up to the one that ended last (decision 17 e). There is no start offset, so that late
    -- uploads of any age are refreshed. Until then their hours are read from the readings (readings_hourly_valid). A refresh
    -- computes the hours of all devices again between the first and the last change of a transaction.
    PERFORM add_continuous_aggregate_policy('readings_hourly',
        start_offset => NULL, end_offset => INTERVAL '0',
        schedule_interval => INTERVAL '10 minutes', if_not_exists => true);
END
$procedure$;
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
