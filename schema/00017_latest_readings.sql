-- +goose Up

-- latest_bucket_at bounds the search for the newest reading of a device, so that it need not read every chunk. Workers
-- move it forward in the transaction that stores a later reading. It can be too late, because readings can be deleted.
-- Other programs do not change it, so that the ranges of imported_ranges must be searched as well.
ALTER TABLE devices ADD COLUMN latest_bucket_at timestamptz;
COMMENT ON COLUMN devices.latest_bucket_at IS
    'no reading is later, except in imported_ranges; -infinity: there is none; null: unknown, until a worker finds it';

-- imported_ranges has the time ranges of the chunks into which other programs than workers wrote readings, until a worker
-- has updated latest_bucket_at. A chunk can be there several times; it is null for all readings.
CREATE TABLE imported_ranges (
    chunk       text,
    range_start timestamptz NOT NULL,
    range_end   timestamptz NOT NULL
);

-- record_import records the chunks into which the transaction wrote. A transition table would contain the rows, but
-- TimescaleDB then inserts the rows of every COPY one by one. The statistics of the transaction are exact and cost no
-- time per row; if they are disabled, everything counts as imported. The function runs with the rights of its owner,
-- because it fires for every role that writes readings.
--
-- A chunk that is there already is locked instead of added again, so that a worker does not delete it before the
-- transaction ends. Other isolation levels than READ COMMITTED cannot lock a row that was deleted meanwhile.
-- +goose StatementBegin
CREATE FUNCTION record_import() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    written regclass;
BEGIN
    IF NOT current_setting('track_counts')::boolean THEN
        INSERT INTO imported_ranges VALUES (NULL, '-infinity', 'infinity');
        RETURN NULL;
    END IF;
    FOR written IN
        SELECT inhrelid FROM pg_inherits
        WHERE inhparent = TG_RELID
          AND pg_stat_get_xact_tuples_inserted(inhrelid) + pg_stat_get_xact_tuples_updated(inhrelid) > 0
    LOOP
        IF current_setting('transaction_isolation') = 'read committed' THEN
            PERFORM FROM imported_ranges WHERE chunk = written::text LIMIT 1 FOR KEY SHARE SKIP LOCKED;
            CONTINUE WHEN FOUND;
        END IF;
        INSERT INTO imported_ranges
        SELECT written::text, c.range_start, c.range_end
        FROM pg_class k
        JOIN pg_namespace n ON n.oid = k.relnamespace
        JOIN timescaledb_information.chunks c ON c.chunk_schema = n.nspname AND c.chunk_name = k.relname
        WHERE k.oid = written;
    END LOOP;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION record_import() FROM PUBLIC;

-- A worker sets roomsensor.worker in each transaction. A deleted reading needs no trigger, because latest_bucket_at may
-- be too late.
CREATE TRIGGER readings_inserted AFTER INSERT ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.worker', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION record_import();
CREATE TRIGGER readings_moved AFTER UPDATE OF device_id, bucket_at ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.worker', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION record_import();

-- +goose Down
DROP TRIGGER readings_moved ON readings;
DROP TRIGGER readings_inserted ON readings;
DROP FUNCTION record_import();
DROP TABLE imported_ranges;
ALTER TABLE devices DROP COLUMN latest_bucket_at;
