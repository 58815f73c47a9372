-- +goose Up

-- ensure_chunk_interval sets the length of the chunks of new readings; existing chunks stay as they are. The chunks of
-- the continuous aggregate are ten times as long, as TimescaleDB creates them. `migrate up` calls it if the length is
-- given.
-- +goose StatementBegin
CREATE PROCEDURE ensure_chunk_interval(chunk_interval interval)
LANGUAGE plpgsql AS $procedure$
DECLARE
    aggregate regclass;
BEGIN
    PERFORM pg_advisory_xact_lock(7283400021);
    IF chunk_interval = (SELECT time_interval FROM timescaledb_information.dimensions
                         WHERE hypertable_schema = 'public' AND hypertable_name = 'readings') THEN
        RETURN;
    END IF;
    PERFORM set_chunk_time_interval('readings', chunk_interval);
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

-- +goose Down
DROP PROCEDURE ensure_chunk_interval(interval);
