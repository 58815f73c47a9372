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

-- samples holds the measurements of devices whose readings are means (A13). The reading of a bucket that has samples is always
-- their mean. Samples are kept as long as readings.
CREATE TABLE samples (
    device_id    uuid NOT NULL,
    measured_at  timestamptz NOT NULL,
    co2_ppm      real,
    temp_c       real,
    humidity_pct real,
    lux          real,
    spl_db       real,
    PRIMARY KEY (device_id, measured_at)
);
SELECT create_hypertable('samples', by_range('measured_at', INTERVAL '7 days'), create_default_indexes => false);

-- opened_chunks has the chunks that the uploads of each team created on a day of UTC, so that all workers count them
-- together (decision 53 c). The next upload of the team that creates one deletes the rows of earlier days.
CREATE TABLE opened_chunks (
    team_id   uuid NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    opened_on date NOT NULL,
    starts_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, opened_on, starts_at)
);

-- chunk_number returns the number of a chunk, which is in its name, such as _hyper_1_NUMBER_chunk. A restored dump has the
-- same numbers, but other oids. Each upload calls it, and a regular expression takes 6 µs more (bench/NOTES.md).
CREATE FUNCTION chunk_number(chunk oid) RETURNS integer
STABLE LANGUAGE sql AS $$SELECT split_part(chunk::regclass::text, '_', -2)::integer$$;

-- insert_device_state inserts the state of a new device. One that another program inserts may have readings already. A
-- search for them reads all chunks, so the service, whose ids are new, says that there are none.
-- +goose StatementBegin
CREATE FUNCTION insert_device_state() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    IF current_setting('roomsensor.worker', true) = 'on' THEN
        INSERT INTO device_state (device_id) VALUES (NEW.id);
    ELSE
        INSERT INTO device_state (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at, chunk)
        SELECT d.id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at,
               chunk_number(r.tableoid)
        FROM (SELECT NEW.id) d (id)
        LEFT JOIN LATERAL (
            SELECT readings.*, readings.tableoid FROM readings
            WHERE readings.device_id = d.id ORDER BY readings.bucket_at DESC LIMIT 1) r ON true;
    END IF;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION insert_device_state() FROM PUBLIC;
CREATE TRIGGER devices_state AFTER INSERT ON devices FOR EACH ROW EXECUTE FUNCTION insert_device_state();

-- refresh_device_state compares the newest readings of device_state with those readings that are in a range, and returns
-- the number of devices that it changed. It locks the devices in the order of their ids, as workers do, before it reads
-- their newest readings again: a worker may have added one meanwhile.
-- +goose StatementBegin
CREATE FUNCTION refresh_device_state(range_start timestamptz, range_end timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET jit = off SET max_parallel_workers_per_gather = 0 SET enable_hashjoin = off SET enable_mergejoin = off AS $function$
DECLARE
    changed uuid[];
BEGIN
    -- By text, so that the plan has only the chunks of the range.
    EXECUTE format('
        SELECT array_agg(s.device_id) FROM device_state s
        LEFT JOIN LATERAL (
            SELECT * FROM readings WHERE device_id = s.device_id AND bucket_at >= %1$L AND bucket_at < %2$L
            ORDER BY bucket_at DESC LIMIT 1) r ON true
        WHERE coalesce(s.bucket_at, ''-infinity'') < %2$L
          AND CASE WHEN s.bucket_at >= %1$L
              THEN (r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at) IS DISTINCT FROM
                   (s.bucket_at, s.co2_ppm, s.temp_c, s.humidity_pct, s.lux, s.spl_db, s.ingested_at)
              ELSE r.bucket_at IS NOT NULL END', range_start, range_end) INTO changed;
    IF changed IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM FROM device_state WHERE device_id = ANY (changed) ORDER BY device_id FOR NO KEY UPDATE;
    UPDATE device_state s
    SET (bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at, chunk) = (
        SELECT r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at,
               chunk_number(r.tableoid)
        FROM readings r WHERE r.device_id = s.device_id ORDER BY r.bucket_at DESC LIMIT 1)
    WHERE s.device_id = ANY (changed);
    RETURN cardinality(changed);
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION refresh_device_state(timestamptz, timestamptz) FROM PUBLIC;

-- delete_readings deletes the readings of a device in a window of buckets, with their samples, and reads its newest
-- reading again. Workers lock the state of a device after its readings, or before them if it has samples: so does this
-- function, so that they seldom wait for each other in a circle. If the device gets samples meanwhile, it fails. The
-- transaction has the level READ COMMITTED, so that each statement sees what was committed before it. A generic plan
-- would lock the chunks of all times.
-- +goose StatementBegin
CREATE FUNCTION delete_readings(of_device uuid, window_from timestamptz, window_to timestamptz,
    OUT deleted_readings bigint, OUT deleted_samples bigint)
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $function$
DECLARE
    was_sampled boolean;
    is_sampled boolean;
BEGIN
    PERFORM FROM device_state WHERE device_id = of_device AND sampled FOR NO KEY UPDATE;
    was_sampled := FOUND;
    DELETE FROM readings r WHERE r.device_id = of_device AND r.bucket_at >= window_from AND r.bucket_at < window_to;
    GET DIAGNOSTICS deleted_readings = ROW_COUNT;
    DELETE FROM samples s WHERE s.device_id = of_device AND s.measured_at >= window_from AND s.measured_at < window_to;
    GET DIAGNOSTICS deleted_samples = ROW_COUNT;
    PERFORM FROM device_state WHERE device_id = of_device FOR NO KEY UPDATE;
    UPDATE device_state s
    SET (bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at, chunk) = (
            SELECT r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at,
                   chunk_number(r.tableoid)
            FROM readings r WHERE r.device_id = s.device_id ORDER BY r.bucket_at DESC LIMIT 1),
        readings_version = pg_current_xact_id()::text::bigint, late_version = pg_current_xact_id()::text::bigint
    WHERE s.device_id = of_device
    RETURNING s.sampled INTO is_sampled;
    IF is_sampled AND NOT was_sampled THEN
        RAISE EXCEPTION 'the sampling of the device changed while its readings were deleted'
            USING ERRCODE = 'serialization_failure';
    END IF;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION delete_readings(uuid, timestamptz, timestamptz) FROM PUBLIC;

-- expiring_devices has the devices whose readings are deleted at an age. It is that of the device or, without one, that of
-- its team. The readings before expired_before, the start of a day of UTC, have expired.
CREATE VIEW expiring_devices AS
SELECT d.id AS device_id, d.team_id,
       date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * coalesce(d.keep_days, t.keep_days)) AS expired_before
FROM devices d JOIN teams t ON t.id = d.team_id
WHERE coalesce(d.keep_days, t.keep_days) IS NOT NULL;

-- expire_readings deletes the readings of a device that have expired, from a time on and for 35 days at most. Workers log
-- in as a role that cannot delete readings, so that it runs with the rights of its owner, and decides itself what has
-- expired. The deletion is not in the change feed, nor in the audit log.
-- +goose StatementBegin
CREATE FUNCTION expire_readings(of_device uuid, since timestamptz,
    OUT deleted_readings bigint, OUT deleted_samples bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    PERFORM set_config('roomsensor.worker', 'on', true);
    SELECT coalesce(sum(x.deleted_readings), 0), coalesce(sum(x.deleted_samples), 0)
    INTO deleted_readings, deleted_samples
    FROM expiring_devices e,
         delete_readings(of_device, since, least(since + make_interval(hours => 24 * 35), e.expired_before)) x
    WHERE e.device_id = of_device;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION expire_readings(uuid, timestamptz) FROM PUBLIC;

-- retention_state has one row: when the last pass began that deletes expired readings. All workers together make one in
-- an hour.
CREATE TABLE retention_state (began_at timestamptz NOT NULL);
INSERT INTO retention_state VALUES ('-infinity');

-- ensure_chunk_interval sets the length of the chunks of new readings; existing chunks stay as they are. The chunks of
-- the continuous aggregate are ten times as long, as TimescaleDB creates them. `migrate up` calls it if the length is
-- given.
-- +goose StatementBegin
CREATE PROCEDURE ensure_chunk_interval(chunk_interval interval)
LANGUAGE plpgsql AS $procedure$
DECLARE
    aggregate regclass;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_key('edition'));
    IF chunk_interval = (SELECT time_interval FROM timescaledb_information.dimensions
                         WHERE hypertable_schema = 'public' AND hypertable_name = 'readings') THEN
        RETURN;
    END IF;
    PERFORM set_chunk_time_interval('readings', chunk_interval);
    PERFORM set_chunk_time_interval('samples', chunk_interval);
    SELECT format('%I.%I', materialization_hypertable_schema, materialization_hypertable_name)::regclass
    INTO aggregate
    FROM timescaledb_information.continuous_aggregates
    WHERE view_schema = 'public' AND view_name = 'readings_hourly';
    IF aggregate IS NOT NULL THEN
        PERFORM set_chunk_time_interval(aggregate, 10 * chunk_interval);
    END IF;
END
$procedure$;
-- +goose StatementEnd

-- ensure_readings_layout sets how old readings and samples are stored. On the Community edition, chunks that ended
-- columnstore_after ago are converted to columns, grouped by device, and chunks that ended drop_after ago are dropped;
-- null means never. On the Apache edition it does nothing. Every `migrate up` calls it, because the edition and the
-- settings may change.
-- +goose StatementBegin
CREATE PROCEDURE ensure_readings_layout(columnstore_after interval, drop_after interval)
LANGUAGE plpgsql AS $procedure$
DECLARE
    hypertable text;
    job record;
BEGIN
    IF current_setting('timescaledb.license') <> 'timescale' THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(lock_key('edition'));
    FOREACH hypertable IN ARRAY ARRAY['readings', 'samples'] LOOP
        IF NOT (SELECT compression_enabled FROM timescaledb_information.hypertables
                WHERE hypertable_schema = 'public' AND hypertable_name = hypertable) THEN
            EXECUTE format('ALTER TABLE %I SET (timescaledb.enable_columnstore,
                timescaledb.segmentby = ''device_id'', timescaledb.orderby = %L)', hypertable,
                CASE hypertable WHEN 'readings' THEN 'bucket_at DESC' ELSE 'measured_at DESC' END);
        END IF;
        FOR job IN
            SELECT proc_name, (coalesce(config ->> 'compress_after', config ->> 'drop_after'))::interval AS after
            FROM timescaledb_information.jobs
            WHERE hypertable_schema = 'public' AND hypertable_name = hypertable
              AND proc_name IN ('policy_compression', 'policy_retention')
        LOOP
            IF job.proc_name = 'policy_compression' AND job.after IS DISTINCT FROM columnstore_after THEN
                CALL remove_columnstore_policy(hypertable::regclass);
            ELSIF job.proc_name = 'policy_retention' AND job.after IS DISTINCT FROM drop_after THEN
                PERFORM remove_retention_policy(hypertable::regclass);
            END IF;
        END LOOP;
        IF columnstore_after IS NOT NULL THEN
            CALL add_columnstore_policy(hypertable::regclass, after => columnstore_after, if_not_exists => true);
        END IF;
        IF drop_after IS NOT NULL THEN
            PERFORM add_retention_policy(hypertable::regclass, drop_after => drop_after, if_not_exists => true);
        END IF;
    END LOOP;
END
$procedure$;
-- +goose StatementEnd

-- readings_layout reports how the readings are stored: the number of chunks and their size; the chunks in the
-- columnstore, with their size as rows and as columns; until when readings_hourly is materialized, and when it was last
-- refreshed; and the two ages of ensure_readings_layout. What the edition does not support is null.
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
      AND _timescaledb_functions.cagg_watermark(h.id) > 0; -- A lower watermark means that nothing was materialized yet.
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

-- ordered_chunks records the chunks that were rewritten in primary-key order. Readings arrive by time, so that those of
-- one device are spread over all pages of a chunk, until the chunk has settled and is rewritten once.
CREATE TABLE ordered_chunks (
    chunk      text PRIMARY KEY,
    ordered_at timestamptz NOT NULL DEFAULT now(),
    written    bigint NOT NULL
);
COMMENT ON COLUMN ordered_chunks.written IS 'rows inserted, updated and deleted until then, from the statistics';

-- chunks_to_order lists the chunks that ended before a time and are not in primary-key order, the newest first: row
-- chunks that were never ordered, and those of which more than a twentieth of the rows was written since. After a reset
-- of the statistics the difference is negative, which counts as nothing written.
-- +goose StatementBegin
CREATE FUNCTION chunks_to_order(ended_before timestamptz)
RETURNS TABLE (chunk text, range_start timestamptz, range_end timestamptz, bytes bigint)
STABLE LANGUAGE sql AS $function$
    SELECT name, c.range_start, c.range_end, pg_total_relation_size(s.relid)
    FROM timescaledb_information.chunks c
    CROSS JOIN LATERAL format('%I.%I', c.chunk_schema, c.chunk_name) name
    JOIN pg_stat_all_tables s ON s.relid = name::regclass
    LEFT JOIN ordered_chunks o ON o.chunk = name
    WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings'
      AND NOT c.is_compressed AND c.range_end <= ended_before
      AND s.n_tup_ins + s.n_tup_upd + s.n_tup_del - coalesce(o.written, -1)
          > CASE WHEN o.written IS NULL THEN 0 ELSE s.n_live_tup / 20 END
    ORDER BY c.range_end DESC
$function$;
-- +goose StatementEnd

-- order_chunk rewrites a chunk in primary-key order (CLUSTER) and locks it meanwhile. It returns false if another
-- process is ordering a chunk. Only the owner of a table may CLUSTER it, and workers log in as a role that owns nothing,
-- so that it runs with the rights of its owner. The fixed search_path keeps a caller from replacing what it calls, and
-- only roles that `migrate up` grants it to may call it. The name must be exactly that of a chunk: regclass accepts texts
-- with a semicolon, and what follows it would run as a statement of the owner.
-- +goose StatementBegin
CREATE FUNCTION order_chunk(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    IF NOT pg_try_advisory_xact_lock(lock_key('order_chunk')) THEN
        RETURN false;
    END IF;
    IF NOT EXISTS (SELECT FROM timescaledb_information.chunks c
                   WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings'
                     AND format('%I.%I', c.chunk_schema, c.chunk_name) = name) THEN
        RAISE EXCEPTION '% is not a chunk of readings', name USING ERRCODE = 'undefined_table';
    END IF;
    EXECUTE (SELECT format('CLUSTER %s USING %I', name, i.relname)
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
             WHERE x.indrelid = name::regclass AND x.indisprimary);
    EXECUTE 'ANALYZE ' || name;
    INSERT INTO ordered_chunks AS o (chunk, written)
    SELECT name, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_all_tables WHERE relid = name::regclass
    ON CONFLICT (chunk) DO UPDATE SET ordered_at = now(), written = excluded.written;
    RETURN true;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION order_chunk(text) FROM PUBLIC;

-- postponed_chunks has the chunks whose rewrite in primary-key order exceeded its time limit. Until postponed_until, no
-- process rewrites such a chunk with the same limit or a shorter one, because the chunk is locked during each attempt.
CREATE TABLE postponed_chunks (
    chunk           text PRIMARY KEY,
    postponed_until timestamptz NOT NULL,
    time_limit      interval NOT NULL
);
