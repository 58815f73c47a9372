-- +goose Up

-- The API keeps the newest reading and the sums of each device in memory, with the version (xmin) of its row in devices.
-- It reads them again when the version changed: a worker updates the row of every device whose readings it changes, in
-- the same transaction. Other programs do not. Their transactions each leave a new value in reading_writers, after which
-- the API reads the readings of all devices again.

-- reading_writers has a row per transaction of another program that changed readings, for as long as no later one
-- replaces it.
CREATE TABLE reading_writers (transaction xid8 NOT NULL);

-- record_writer replaces the rows of transactions that have ended. It passes over those that another transaction
-- replaces, so that no import waits for another one. Other isolation levels than READ COMMITTED could not replace a row
-- that changed meanwhile. The function runs with the rights of its owner, because it fires for every role that writes
-- readings.
-- +goose StatementBegin
CREATE FUNCTION record_writer() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    IF EXISTS (SELECT FROM reading_writers WHERE transaction = pg_current_xact_id()) THEN
        RETURN NULL;
    END IF;
    IF current_setting('transaction_isolation') = 'read committed' THEN
        DELETE FROM reading_writers WHERE ctid = ANY (ARRAY(SELECT ctid FROM reading_writers FOR UPDATE SKIP LOCKED));
    END IF;
    INSERT INTO reading_writers VALUES (pg_current_xact_id());
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION record_writer() FROM PUBLIC;

-- A worker sets roomsensor.heartbeat in each transaction. One of an older version does not set it, and counts as another
-- program, because it does not update every row. TRUNCATE and drop_chunks drop chunks, which the API sees.
CREATE TRIGGER readings_written AFTER INSERT OR UPDATE OR DELETE ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.heartbeat', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION record_writer();

-- +goose Down
DROP TRIGGER readings_written ON readings;
DROP FUNCTION record_writer();
DROP TABLE reading_writers;
