-- +goose Up

-- How old readings lie on disk is a matter of the edition and of settings,
-- which may both change later: every migration upwards ends with this
-- procedure. On Community, chunks that ended columnstore_after ago become
-- columns, a device's readings beside one another, and chunks that ended
-- drop_after ago go; null is never. On Apache, rows stay as they came.
-- +goose StatementBegin
CREATE PROCEDURE ensure_readings_layout(columnstore_after interval, drop_after interval)
LANGUAGE plpgsql AS $procedure$
DECLARE
    job record;
    wanted interval;
BEGIN
    IF current_setting('timescaledb.license') <> 'timescale' THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(7283400021);
    IF NOT (SELECT compression_enabled FROM timescaledb_information.hypertables
            WHERE hypertable_schema = 'public' AND hypertable_name = 'readings') THEN
        ALTER TABLE readings SET (timescaledb.enable_columnstore,
            timescaledb.segmentby = 'device_id', timescaledb.orderby = 'bucket_at DESC');
    END IF;
    FOR job IN
        SELECT proc_name, (coalesce(config ->> 'compress_after', config ->> 'drop_after'))::interval AS after
        FROM timescaledb_information.jobs
        WHERE hypertable_schema = 'public' AND hypertable_name = 'readings'
          AND proc_name IN ('policy_compression', 'policy_retention')
    LOOP
        IF job.proc_name = 'policy_compression' AND job.after IS DISTINCT FROM columnstore_after THEN
            CALL remove_columnstore_policy('readings');
        ELSIF job.proc_name = 'policy_retention' AND job.after IS DISTINCT FROM drop_after THEN
            PERFORM remove_retention_policy('readings');
        END IF;
    END LOOP;
    IF columnstore_after IS NOT NULL THEN
        CALL add_columnstore_policy('readings', after => columnstore_after, if_not_exists => true);
    END IF;
    IF drop_after IS NOT NULL THEN
        PERFORM add_retention_policy('readings', drop_after => drop_after, if_not_exists => true);
    END IF;
END
$procedure$;
-- +goose StatementEnd

-- readings_layout says how the readings lie: chunks and bytes in all; chunks in
-- the columnstore, with what they took before and take now; up to when
-- readings_hourly is materialised, and when it was refreshed last. What the
-- edition does not have is null.
-- +goose StatementBegin
CREATE FUNCTION readings_layout(
    OUT chunks bigint, OUT bytes bigint,
    OUT columnstore_chunks bigint, OUT columnstore_bytes_before bigint, OUT columnstore_bytes bigint,
    OUT materialized_until timestamptz, OUT refreshed_at timestamptz,
    OUT columnstore_after interval, OUT drop_after interval)
STABLE LANGUAGE plpgsql AS $function$
BEGIN
    SELECT num_chunks INTO chunks FROM timescaledb_information.hypertables
    WHERE hypertable_schema = 'public' AND hypertable_name = 'readings';
    bytes := hypertable_size('readings');
    IF current_setting('timescaledb.license') <> 'timescale' THEN
        RETURN;
    END IF;
    SELECT coalesce(sum(number_compressed_chunks), 0),
           coalesce(sum(before_compression_total_bytes), 0), coalesce(sum(after_compression_total_bytes), 0)
    INTO columnstore_chunks, columnstore_bytes_before, columnstore_bytes
    FROM hypertable_columnstore_stats('readings');
    SELECT _timescaledb_functions.to_timestamp(_timescaledb_functions.cagg_watermark(h.id))
    INTO materialized_until
    FROM timescaledb_information.continuous_aggregates a
    JOIN _timescaledb_catalog.hypertable h
      ON h.schema_name = a.materialization_hypertable_schema AND h.table_name = a.materialization_hypertable_name
    WHERE a.view_schema = 'public' AND a.view_name = 'readings_hourly'
      AND _timescaledb_functions.cagg_watermark(h.id) > 0; -- Nothing was materialised yet below that.
    SELECT max(s.last_successful_finish) INTO refreshed_at
    FROM timescaledb_information.jobs j JOIN timescaledb_information.job_stats s USING (job_id)
    WHERE j.proc_name = 'policy_refresh_continuous_aggregate' AND isfinite(s.last_successful_finish);
    SELECT max((config ->> 'compress_after')::interval), max((config ->> 'drop_after')::interval)
    INTO columnstore_after, drop_after
    FROM timescaledb_information.jobs
    WHERE hypertable_schema = 'public' AND hypertable_name = 'readings';
END
$function$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION readings_layout();
DROP PROCEDURE ensure_readings_layout(interval, interval);
-- +goose StatementBegin
DO $$
DECLARE
    chunk regclass;
BEGIN
    IF current_setting('timescaledb.license') <> 'timescale' THEN
        RETURN;
    END IF;
    CALL remove_columnstore_policy('readings', if_exists => true);
    PERFORM remove_retention_policy('readings', if_exists => true);
    FOR chunk IN
        SELECT format('%I.%I', chunk_schema, chunk_name)::regclass FROM timescaledb_information.chunks
        WHERE hypertable_schema = 'public' AND hypertable_name = 'readings' AND is_compressed
    LOOP
        CALL convert_to_rowstore(chunk);
    END LOOP;
    IF (SELECT compression_enabled FROM timescaledb_information.hypertables
        WHERE hypertable_schema = 'public' AND hypertable_name = 'readings') THEN
        ALTER TABLE readings SET (timescaledb.enable_columnstore = false);
    END IF;
END
$$;
-- +goose StatementEnd
