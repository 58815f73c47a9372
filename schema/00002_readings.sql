-- +goose Up

-- readings holds one row per device and 5-minute bucket. It has no foreign key to devices, because its trigger would
-- fire for every row of a bulk write; the worker, its only writer, looks up the device before it writes.
CREATE TABLE readings (
    device_id    uuid NOT NULL,
    bucket_at    timestamptz NOT NULL,
    co2_ppm      real,
    temp_c       real,
    humidity_pct real,
    lux          real,
    spl_db       real,
    measured_at  timestamptz,
    ingested_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (device_id, bucket_at),
    CONSTRAINT readings_bucket_at_check CHECK (
        date_bin('5 minutes', bucket_at, '2000-01-01 00:00:00+00') = bucket_at)
);
COMMENT ON COLUMN readings.measured_at IS 'time of the measurement that the row holds; null counts as bucket_at';

-- A chunk holds 7 days: more chunks would make every page slower, and larger ones would not fit the cache.
SELECT create_hypertable('readings', by_range('bucket_at', INTERVAL '7 days'), create_default_indexes => false);

-- ensure_readings_hourly creates readings_hourly: a real-time continuous aggregate on the Community edition of
-- TimescaleDB, and a plain view with the same columns on the Apache edition. It may be called at any time, and every
-- `migrate up` calls it, because an installation may change from Apache to Community later.
--
-- The values are summed as double precision, because a sum of real loses precision from the third digit on.
-- +goose StatementBegin
CREATE PROCEDURE ensure_readings_hourly()
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

-- +goose Down
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
DROP PROCEDURE ensure_readings_hourly();
DROP TABLE readings;
