-- +goose Up

-- The change feed (A5) delivers readings in the order of time, in rounds: a round from A to B has the readings whose time
-- is at or after A and before B. B is a watermark: all readings before it are committed, and no transaction adds one
-- later. The order of ingested_at is not the order of commit, so that a watermark needs the help of the writers:
--
--  1. A worker locks the time of its transaction (feed_begin), shared, until the transaction ends. It reads
--     feed_reserved after that, and writes with a time after both its now() and feed_reserved.
--  2. A reader moves feed_reserved to its clock and commits. After that it reads the oldest time that is locked. The
--     watermark is the smaller one of the two.
--
-- A transaction that holds its lock when the reader looks has a time at or after the watermark. One that locks its time
-- later reads the new feed_reserved, and its time is after that. All others have ended before the reader looked, and
-- PostgreSQL makes a transaction visible before it releases its locks. The proof needs neither an order of commits nor
-- clocks that move forward: after the promotion of a standby whose clock is behind, the times of new transactions
-- continue after feed_reserved.
--
-- SQL of other programs takes its times from now(), which may be long ago. Triggers record where such a transaction wrote
-- (feed_record). When it commits, and feed_reserved has passed its now() meanwhile, the feed takes the time of the commit
-- instead of ingested_at for its readings (feed_finish). So an import of an hour delays nobody.
--
-- feed_reserved is in microseconds since 1970. It is a sequence because every transaction reads the present value of a
-- sequence, whatever its isolation level, and because it leaves no dead rows.
CREATE SEQUENCE feed_reserved AS bigint MINVALUE 1 NO CYCLE;
SELECT setval('feed_reserved', 1);

-- feed_batches records where a transaction changed readings, so that a round at the head of the feed reads only these.
-- Workers delete a row after some minutes.
CREATE TABLE feed_batches (
    effective_at timestamptz,
    ingested_at  timestamptz NOT NULL DEFAULT now(),
    devices      integer NOT NULL DEFAULT 0,
    device_ids   uuid[],
    first_at     timestamptz[] NOT NULL,
    last_at      timestamptz[] NOT NULL,
    days         date[] NOT NULL
);
COMMENT ON COLUMN feed_batches.effective_at IS 'the time in the feed; null until a transaction of another program commits';
COMMENT ON COLUMN feed_batches.ingested_at IS 'the ingested_at of the readings; they are late if effective_at differs';
COMMENT ON COLUMN feed_batches.device_ids IS 'null: any device may have changed';
COMMENT ON COLUMN feed_batches.last_at IS 'the last bucket of each device, or one for all; the first is in first_at';
COMMENT ON COLUMN feed_batches.days IS 'the UTC days of these buckets';
-- Random ids do not compress.
ALTER TABLE feed_batches ALTER device_ids SET STORAGE EXTERNAL, ALTER first_at SET STORAGE EXTERNAL,
    ALTER last_at SET STORAGE EXTERNAL;
CREATE INDEX feed_batches_effective_idx ON feed_batches (effective_at);
CREATE INDEX feed_batches_late_idx ON feed_batches (effective_at) WHERE effective_at <> ingested_at;
CREATE INDEX feed_batches_open_idx ON feed_batches (ingested_at) WHERE effective_at IS NULL;

-- feed_days keeps less of feed_batches for longer: the days of the buckets that changed, by hour of the change.
CREATE TABLE feed_days (
    written_at timestamptz,
    day        date,
    PRIMARY KEY (written_at, day)
);

-- feed_state has one row: since when the two tables are complete.
CREATE TABLE feed_state (
    batches_since timestamptz NOT NULL DEFAULT now(),
    days_since    timestamptz NOT NULL DEFAULT now()
);
INSERT INTO feed_state DEFAULT VALUES;

-- feed_micros returns a time in microseconds since 1970.
CREATE FUNCTION feed_micros(at timestamptz) RETURNS bigint
IMMUTABLE LANGUAGE sql AS 'SELECT (extract(epoch FROM at) * 1000000)::bigint';

-- feed_time is the inverse of feed_micros.
CREATE FUNCTION feed_time(micros bigint) RETURNS timestamptz
IMMUTABLE LANGUAGE sql AS $$SELECT timestamptz '1970-01-01 00:00:00Z' + micros * interval '1 microsecond'$$;

-- feed_key returns the key of the advisory lock of a time. The upper 20 bits mark such keys, the other 44 are
-- milliseconds since 1970. A shared lock never waits, because nothing locks them otherwise.
CREATE FUNCTION feed_key(micros bigint) RETURNS bigint
IMMUTABLE LANGUAGE sql AS 'SELECT (388821::bigint << 44) | (micros / 1000)';

-- feed_locked returns the oldest time that is locked, or null. A view of the locks is exact at one moment.
CREATE FUNCTION feed_locked() RETURNS bigint
LANGUAGE sql AS $function$
    SELECT min(((classid::bigint & 4095) << 32 | objid::bigint) * 1000) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = 388821
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$function$;

-- feed_begin begins a transaction of a worker. Its readings must have roomsensor.ingested_at as their ingested_at. That
-- equals now(), unless a reader reserved that time already. The transaction ends after 45 seconds (A5.4), where
-- PostgreSQL can do that.
-- +goose StatementBegin
CREATE FUNCTION feed_begin() RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
    began constant bigint := feed_micros(now());
    reserved bigint := pg_sequence_last_value('public.feed_reserved'::regclass);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(feed_key(greatest(began, reserved + 1)));
    reserved := pg_sequence_last_value('public.feed_reserved'::regclass);
    IF reserved IS NULL THEN
        RAISE EXCEPTION 'the sequence feed_reserved has no value';
    END IF;
    PERFORM set_config('roomsensor.feed', 'on', true),
        set_config('roomsensor.ingested_at', to_char(feed_time(greatest(began, reserved + 1)) AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), true);
    IF current_setting('server_version_num')::integer >= 170000 THEN
        PERFORM set_config('transaction_timeout', '45s', true);
    END IF;
END
$function$;
-- +goose StatementEnd

-- feed_reserve moves feed_reserved forward and returns it. The value counts once the transaction is committed. It stays
-- 100 ms behind the clock, so that transactions of other programs are seldom late. It moves even if the clock does not,
-- so that what was written meanwhile comes before it. One caller at a time: setval alone could move it back.
-- +goose StatementBegin
CREATE FUNCTION feed_reserve() RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock(7283400026);
    RETURN feed_time(setval('feed_reserved', greatest(
        feed_micros(clock_timestamp() - interval '100 milliseconds'),
        pg_sequence_last_value('feed_reserved'::regclass) + 1000)));
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION feed_reserve() FROM PUBLIC;

-- feed_record records the chunks into which a transaction of another program wrote, once each. Like record_import it
-- asks the statistics of the transaction, and runs with the rights of its owner.
-- +goose StatementBegin
CREATE FUNCTION feed_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    INSERT INTO feed_batches (first_at, last_at, days)
    SELECT ARRAY[c.range_start], ARRAY[c.range_end], ARRAY(
        SELECT day::date FROM generate_series((c.range_start AT TIME ZONE 'UTC')::date,
            (c.range_end AT TIME ZONE 'UTC')::date, interval '1 day') day)
    FROM pg_inherits i
    JOIN pg_class k ON k.oid = i.inhrelid
    JOIN pg_namespace n ON n.oid = k.relnamespace
    JOIN timescaledb_information.chunks c ON c.chunk_schema = n.nspname AND c.chunk_name = k.relname
    WHERE i.inhparent = TG_RELID
      AND (NOT current_setting('track_counts')::boolean
           OR pg_stat_get_xact_tuples_inserted(i.inhrelid) + pg_stat_get_xact_tuples_updated(i.inhrelid) > 0)
      AND NOT EXISTS (
          SELECT FROM feed_batches b
          WHERE b.ingested_at = now() AND b.effective_at IS NULL AND b.first_at = ARRAY[c.range_start]);
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION feed_record() FROM PUBLIC;

-- feed_finish sets the time in the feed of what feed_record recorded, when the transaction commits. A transaction that
-- began more than 30 seconds ago counts as late, so that a client that begins at a time (A5.8) gets what was committed
-- after that, also if nobody has read the feed.
-- +goose StatementBegin
CREATE FUNCTION feed_finish() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    began constant bigint := feed_micros(now());
    ends constant bigint := feed_micros(clock_timestamp());
    reserved bigint := pg_sequence_last_value('feed_reserved'::regclass);
    late boolean := reserved >= began OR ends - began > 30000000;
BEGIN
    IF NOT EXISTS (SELECT FROM feed_batches WHERE ingested_at = now() AND effective_at IS NULL) THEN
        RETURN NULL; -- The first row of the transaction did it for all of them.
    END IF;
    PERFORM pg_advisory_xact_lock_shared(feed_key(CASE WHEN late THEN greatest(ends, reserved + 1) ELSE began END));
    reserved := pg_sequence_last_value('feed_reserved'::regclass);
    late := late OR reserved >= began;
    UPDATE feed_batches SET effective_at = feed_time(CASE WHEN late THEN greatest(ends, reserved + 1) ELSE began END)
    WHERE ingested_at = now() AND effective_at IS NULL;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION feed_finish() FROM PUBLIC;

CREATE CONSTRAINT TRIGGER feed_batches_commit AFTER INSERT ON feed_batches DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.effective_at IS NULL) EXECUTE FUNCTION feed_finish();

-- feed_begin sets roomsensor.feed. A worker of an older version does not call it, and counts as another program.
CREATE TRIGGER readings_feed_inserted AFTER INSERT ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.feed', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION feed_record();
CREATE TRIGGER readings_feed_updated AFTER UPDATE OF ingested_at ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.feed', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION feed_record();

-- +goose Down
DROP TRIGGER readings_feed_updated ON readings;
DROP TRIGGER readings_feed_inserted ON readings;
DROP TABLE feed_batches;
DROP FUNCTION feed_finish();
DROP FUNCTION feed_record();
DROP FUNCTION feed_reserve();
DROP FUNCTION feed_begin();
DROP FUNCTION feed_locked();
DROP FUNCTION feed_key(bigint);
DROP FUNCTION feed_time(bigint);
DROP FUNCTION feed_micros(timestamptz);
DROP TABLE feed_state;
DROP TABLE feed_days;
DROP SEQUENCE feed_reserved;
