-- +goose Up

-- The change feed (A5) delivers readings in the order of time, in rounds. A round from A to B has the readings whose time
-- is at or after A and before B. B is a watermark: all readings before it are committed, and no transaction adds one
-- later. Transactions do not commit in the order of ingested_at, so a watermark needs the help of the writers:
--
--  1. A worker locks the time of its transaction (feed_begin), shared, until the transaction ends. After that it reads
--     feed_reserved, and writes with a time after both its now() and feed_reserved.
--  2. A reader moves feed_reserved to its clock and commits. After that it reads the oldest time that is locked. The
--     watermark is the smaller one of the two.
--
-- Proof. When the reader looks, each transaction of a worker is in one of three states. If it holds its lock, its time is
-- locked, so it is at or after the watermark. If it locks its time later, it reads the new feed_reserved, and its time is
-- after that. Otherwise it has ended, and its readings are visible, because PostgreSQL makes a transaction visible before
-- it releases its locks. The proof needs neither an order of commits nor clocks that move forward: after the promotion of
-- a standby whose clock is behind, the times of new transactions continue after feed_reserved.
--
-- SQL of other programs takes its times from now(), which may be long ago. A trigger records in foreign_writes where such
-- a transaction wrote. If feed_reserved has passed its now() when it commits, the feed uses the time of the commit instead
-- of ingested_at for its readings (finish_foreign_writes). So an import that runs for an hour delays nobody.
--
-- The deletion of a range of readings has a time in the feed too (reading_deletions). A client deletes the range from its
-- copy, so that no reading that is stored after the deletion may have an earlier time. feed_begin alone does not ensure
-- that: a worker may have locked an earlier time, and store a reading after the deletion. So a deletion
--
--  1. locks a whole millisecond after feed_reserved and ahead of the clock (feed_begin_deletion): its time in the feed;
--  2. waits until it is the oldest time that is locked and feed_reserved has reached it, and deletes after that.
--
-- Proof. A worker that locks its time after step 2 reads that feed_reserved, and has a later time. One that had locked an
-- earlier time has ended, because a lock has whole milliseconds, so that no other time is in that of an earlier one. What
-- it stored is visible, and is deleted. A transaction of another program that commits later is late, and gets the time of
-- its commit. So whatever is in the range after the deletion has a later time, and comes in the same round or in a later
-- one. No watermark is after the time while it is locked, so that no round misses the deletion.

-- feed_reserved is in microseconds since 1970. It is a sequence because every transaction reads the present value of a
-- sequence, whatever its isolation level, and because it leaves no dead rows.
CREATE SEQUENCE feed_reserved AS bigint MINVALUE 1 NO CYCLE;
SELECT setval('feed_reserved', 1);

-- feed_batches records where a transaction of a worker changed readings, in a row per team, so that a round at the head
-- of the feed reads only these, and what one team writes costs the others nothing. Workers delete a row after some
-- minutes. Random ids do not compress, and no query filters by the arrays: to analyze them took a tenth of the processor
-- time of a database with 3,000 uploads per second.
CREATE TABLE feed_batches (
    team_id      uuid NOT NULL,
    effective_at timestamptz NOT NULL,
    devices      integer NOT NULL,
    device_ids   uuid[] NOT NULL,
    first_at     timestamptz[] NOT NULL,
    last_at      timestamptz[] NOT NULL
);
COMMENT ON COLUMN feed_batches.effective_at IS 'the time in the feed: the ingested_at of the readings';
COMMENT ON COLUMN feed_batches.last_at IS 'the last bucket of each device; the first is in first_at';
ALTER TABLE feed_batches
    ALTER device_ids SET STORAGE EXTERNAL, ALTER first_at SET STORAGE EXTERNAL, ALTER last_at SET STORAGE EXTERNAL,
    ALTER device_ids SET STATISTICS 0, ALTER first_at SET STATISTICS 0, ALTER last_at SET STATISTICS 0;
CREATE INDEX feed_batches_team_idx ON feed_batches (team_id, effective_at);
CREATE INDEX feed_batches_effective_idx ON feed_batches (effective_at);

-- foreign_writes records which transactions of other programs than workers changed readings, and where: a row per chunk
-- into which one wrote, and a row without a range if it deleted readings. It has three readers:
--
--  - The commit of the transaction, which compares the newest readings in device_state with those in the ranges.
--  - The feed, which reads the chunks in the round of effective_at.
--  - /devices/current, which keeps statistics in memory. It reads them again when the number of rows that were ever
--    committed has changed: those here that have a transaction, and feed_state.foreign_writes.
--
-- After some minutes a worker settles a row: it counts it in feed_state, keeps its days in feed_days, and deletes it. If
-- the readings are late in the feed, it sets transaction to null instead, because the feed needs the two times longer.
CREATE TABLE foreign_writes (
    transaction  xid8 DEFAULT pg_current_xact_id(),
    range_start  timestamptz,
    range_end    timestamptz,
    ingested_at  timestamptz NOT NULL DEFAULT now(),
    effective_at timestamptz
);
COMMENT ON COLUMN foreign_writes.transaction IS 'null: the row is settled';
COMMENT ON COLUMN foreign_writes.ingested_at IS 'the ingested_at of the readings; they are late if effective_at differs';
COMMENT ON COLUMN foreign_writes.effective_at IS 'the time in the feed; null until the transaction commits';
CREATE INDEX foreign_writes_effective_idx ON foreign_writes (effective_at);
CREATE INDEX foreign_writes_transaction_idx ON foreign_writes (transaction) WHERE transaction IS NOT NULL;

-- feed_days keeps less of the two tables for longer: the UTC days of the buckets that changed, by team and hour of the
-- change. team_id is null for what another program wrote, which may concern every team.
CREATE TABLE feed_days (
    team_id    uuid,
    written_at timestamptz NOT NULL,
    day        date NOT NULL,
    UNIQUE NULLS NOT DISTINCT (team_id, written_at, day)
);
CREATE INDEX feed_days_written_idx ON feed_days (written_at);

-- reading_deletions has the ranges of readings of a device that an operator deleted (A5.12). A team has one deletion per
-- time. Workers delete a row when no round can begin before it any more.
CREATE TABLE reading_deletions (
    team_id      uuid NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    effective_at timestamptz NOT NULL,
    device_id    uuid NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    deleted_from timestamptz NOT NULL,
    deleted_to   timestamptz NOT NULL,
    readings     bigint NOT NULL,
    samples      bigint NOT NULL,
    PRIMARY KEY (team_id, effective_at)
);
COMMENT ON COLUMN reading_deletions.effective_at IS 'the time in the feed';
COMMENT ON COLUMN reading_deletions.deleted_to IS 'the first bucket that was not deleted';
CREATE INDEX reading_deletions_effective_idx ON reading_deletions (effective_at);
CREATE INDEX reading_deletions_device_idx ON reading_deletions (device_id);

-- feed_state has one row: since when feed_batches and foreign_writes are complete, and since when feed_days is; and the
-- number of settled rows of foreign_writes.
CREATE TABLE feed_state (
    batches_since  timestamptz NOT NULL DEFAULT now(),
    days_since     timestamptz NOT NULL DEFAULT now(),
    foreign_writes bigint NOT NULL DEFAULT 0
);
INSERT INTO feed_state DEFAULT VALUES;

-- A position of the change feed is a watermark, and feed_reserve commits before a request returns one. So no position is
-- later than the last time that was reserved. A restored database has lost the last of these times: clients with a later
-- position have readings that it may lack, and must start again.
--
-- A server that continues from a restored state is another process, or another database of the same process: after a
-- recovery to a point in time, the copy of a disk, a dump, and the promotion of a standby. The first feed_reserve there
-- records a break in feed_breaks. It lasts from the last time that was reserved before, which is restored too, to the
-- first one after. No position that was issued by this database lies within a break, so that one that does is refused. An
-- ordinary restart, and the promotion of a synchronous standby, record a break too, and lose no reserved time: they refuse
-- no position.
CREATE TABLE feed_breaks (
    after_at  timestamptz NOT NULL,
    before_at timestamptz NOT NULL
);

-- feed_server has one row from the first feed_reserve on: where it ran last, and what it returned.
-- The time is not taken from feed_reserved, because a dump does not read a sequence at the moment of the tables.
CREATE TABLE feed_server (
    started_at  timestamptz,
    database    oid,
    reserved_at timestamptz
);
COMMENT ON COLUMN feed_server.started_at IS 'when the server process started';

-- feed_range_days returns the UTC days of a range of foreign_writes.
CREATE FUNCTION feed_range_days(range_start timestamptz, range_end timestamptz) RETURNS SETOF date
STABLE LANGUAGE sql AS $$
    SELECT day::date FROM generate_series((range_start AT TIME ZONE 'UTC')::date, (range_end AT TIME ZONE 'UTC')::date,
                                          interval '1 day') day
$$;

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

-- feed_locked returns the oldest time that is locked, or null. A view of the locks is exact at one moment. A transaction
-- that began before the first feed_reserve after a break may have locked a time within it: the watermark then stays before
-- the break.
CREATE FUNCTION feed_locked() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT least(l.oldest, (SELECT min(feed_micros(b.after_at)) FROM feed_breaks b
                            WHERE feed_micros(b.after_at) < l.oldest AND l.oldest < feed_micros(b.before_at)))
    FROM (SELECT min(((classid::bigint & 4095) << 32 | objid::bigint) * 1000) AS oldest FROM pg_locks
          WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = feed_key(0) >> 44
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) l
$function$;

-- feed_ahead reports whether a position of the feed is ahead of this database: it was issued after the moment to which the
-- database was restored.
CREATE FUNCTION feed_ahead(at timestamptz) RETURNS boolean
STABLE LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT at > coalesce((SELECT reserved_at FROM feed_server), 'infinity')
        OR EXISTS (SELECT FROM feed_breaks WHERE after_at < at AND at < before_at)
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
    PERFORM set_config('roomsensor.ingested_at', to_char(feed_time(greatest(began, reserved + 1)) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), true);
    IF current_setting('server_version_num')::integer >= 170000 THEN
        PERFORM set_config('transaction_timeout', '45s', true);
    END IF;
END
$function$;
-- +goose StatementEnd

-- feed_begin_deletion begins the deletion of a range of readings, and returns its time in the feed. Like feed_begin it
-- ends the transaction after 45 seconds. A server that was paused between the two reads of feed_reserved fails it.
-- +goose StatementBegin
CREATE FUNCTION feed_begin_deletion() RETURNS timestamptz
LANGUAGE plpgsql AS $function$
DECLARE
    at constant bigint := (greatest(feed_micros(clock_timestamp()),
        pg_sequence_last_value('public.feed_reserved'::regclass)) / 1000 + 100) * 1000;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(feed_key(at));
    IF (pg_sequence_last_value('public.feed_reserved'::regclass) < at) IS NOT TRUE THEN
        RAISE EXCEPTION 'feed_reserved has passed the time of the deletion' USING ERRCODE = 'serialization_failure';
    END IF;
    IF current_setting('server_version_num')::integer >= 170000 THEN
        PERFORM set_config('transaction_timeout', '45s', true);
    END IF;
    RETURN feed_time(at);
END
$function$;
-- +goose StatementEnd

-- feed_reserve moves feed_reserved forward and returns it. The value counts once the transaction is committed. It stays
-- 100 ms behind the clock, so that transactions of other programs are seldom late. It moves even if the clock does not,
-- so that what was written meanwhile comes before it. If the clock stepped back, it moves beyond what was written before:
-- otherwise that would appear in the feed only when the clock reaches its time again. One caller at a time: setval alone
-- could move it back.
-- +goose StatementBegin
CREATE FUNCTION feed_reserve() RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    here constant oid := (SELECT oid FROM pg_database WHERE datname = current_database());
    server feed_server;
    first bigint;
    reserved timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_key('feed_reserve'));
    first := pg_sequence_last_value('feed_reserved'::regclass);
    SELECT * INTO server FROM feed_server;
    reserved := feed_time(setval('feed_reserved', greatest(
        feed_micros(clock_timestamp() - interval '100 milliseconds'),
        feed_micros((SELECT max(effective_at) FROM feed_batches WHERE effective_at > clock_timestamp())) + 1,
        feed_micros((SELECT max(effective_at) FROM foreign_writes WHERE effective_at > clock_timestamp())) + 1,
        feed_micros((SELECT max(effective_at) FROM reading_deletions WHERE effective_at > clock_timestamp())) + 1,
        first + 1000)));
    IF (server.started_at, server.database) IS DISTINCT FROM (pg_postmaster_start_time(), here) AND first > 1 THEN
        INSERT INTO feed_breaks VALUES (coalesce(server.reserved_at, feed_time(first)), reserved);
        -- The positions that it concerns have expired.
        DELETE FROM feed_breaks WHERE before_at < reserved - interval '90 days';
    END IF;
    UPDATE feed_server SET started_at = pg_postmaster_start_time(), database = here, reserved_at = reserved;
    IF NOT FOUND THEN
        INSERT INTO feed_server VALUES (pg_postmaster_start_time(), here, reserved);
    END IF;
    RETURN reserved;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION feed_reserve() FROM PUBLIC;

-- record_foreign_write records the chunks into which the transaction wrote, once each. A transition table would contain
-- the rows, but TimescaleDB then inserts the rows of every COPY one by one. The statistics of the transaction lack nothing
-- and cost no time per row. They can also have what the session wrote within the second before. If they are disabled, the
-- transaction counts as having written into every chunk. The function runs with the rights of its owner, because it fires
-- for every role that writes readings.
-- +goose StatementBegin
CREATE FUNCTION record_foreign_write() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    INSERT INTO foreign_writes (range_start, range_end)
    SELECT c.range_start, c.range_end
    FROM pg_inherits i
    JOIN pg_class k ON k.oid = i.inhrelid
    JOIN pg_namespace n ON n.oid = k.relnamespace
    JOIN timescaledb_information.chunks c ON c.chunk_schema = n.nspname AND c.chunk_name = k.relname
    WHERE i.inhparent = TG_RELID
      AND (NOT current_setting('track_counts')::boolean
           OR pg_stat_get_xact_tuples_inserted(i.inhrelid) + pg_stat_get_xact_tuples_updated(i.inhrelid) > 0)
      AND NOT EXISTS (SELECT FROM foreign_writes w
                      WHERE w.transaction = pg_current_xact_id() AND w.effective_at IS NULL
                        AND w.range_start = c.range_start);
    IF NOT EXISTS (SELECT FROM foreign_writes w WHERE w.transaction = pg_current_xact_id() AND w.effective_at IS NULL
                     AND (TG_OP <> 'DELETE' OR w.range_start IS NULL)) THEN
        INSERT INTO foreign_writes DEFAULT VALUES;
    END IF;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION record_foreign_write() FROM PUBLIC;

-- A worker sets roomsensor.worker in each transaction: it records in feed_batches where it wrote, and updates the row of
-- every device whose readings it changes. TRUNCATE and drop_chunks drop chunks, which /devices/current notices.
CREATE TRIGGER readings_foreign AFTER INSERT OR UPDATE OR DELETE ON readings FOR EACH STATEMENT
    WHEN (current_setting('roomsensor.worker', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION record_foreign_write();

-- finish_foreign_writes runs when a transaction commits that record_foreign_write recorded. It brings device_state up to
-- date, and sets the time in the feed. A transaction that began more than 30 seconds ago counts as late, so that a client
-- that begins at a time (A5.8) gets what was committed after that, also if nobody has read the feed.
-- +goose StatementBegin
CREATE FUNCTION finish_foreign_writes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    began constant bigint := feed_micros(now());
    ends bigint;
    reserved bigint;
    late boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM foreign_writes WHERE transaction = pg_current_xact_id() AND effective_at IS NULL) THEN
        RETURN NULL; -- The first row of the transaction did it for all of them.
    END IF;
    PERFORM refresh_device_state(coalesce(range_start, '-infinity'), coalesce(range_end, 'infinity'))
    FROM foreign_writes WHERE transaction = pg_current_xact_id() AND effective_at IS NULL;
    ends := feed_micros(clock_timestamp());
    reserved := pg_sequence_last_value('feed_reserved'::regclass);
    late := reserved >= began OR ends - began > 30000000;
    PERFORM pg_advisory_xact_lock_shared(feed_key(CASE WHEN late THEN greatest(ends, reserved + 1) ELSE began END));
    reserved := pg_sequence_last_value('feed_reserved'::regclass);
    late := late OR reserved >= began;
    UPDATE foreign_writes SET effective_at = feed_time(CASE WHEN late THEN greatest(ends, reserved + 1) ELSE began END)
    WHERE transaction = pg_current_xact_id() AND effective_at IS NULL;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION finish_foreign_writes() FROM PUBLIC;

CREATE CONSTRAINT TRIGGER foreign_writes_commit AFTER INSERT ON foreign_writes DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.effective_at IS NULL) EXECUTE FUNCTION finish_foreign_writes();
