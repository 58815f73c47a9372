-- +goose Up

-- A position of the change feed is a watermark, and feed_reserve commits before a request returns one. So no position is
-- later than the last time that was reserved. A restored database has lost the last of these times: clients with a later
-- position have readings that it may lack, and must start again.
--
-- A server that continues from a restored state is another process, or another database of the same process: after a
-- recovery to a point in time, the copy of a disk, a dump, and the promotion of a standby. The first feed_reserve there
-- records a break. It lasts from the last time that was reserved before, which is restored too, to the first one after.
-- No position that was issued by this database lies within a break, so that one that does is refused. An ordinary restart,
-- and the promotion of a synchronous standby, record a break too, and lose no reserved time: they refuse no position.

-- feed_server has one row from the first feed_reserve on: where it ran last, and what it returned.
-- The time is not taken from feed_reserved, because a dump does not read a sequence at the moment of the tables.
CREATE TABLE feed_server (
    started_at  timestamptz,
    database    oid,
    reserved_at timestamptz
);
COMMENT ON COLUMN feed_server.started_at IS 'when the server process started';

CREATE TABLE feed_breaks (
    after_at  timestamptz NOT NULL,
    before_at timestamptz NOT NULL
);

-- feed_reserve of 00022, which records breaks too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION feed_reserve() RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    here constant oid := (SELECT oid FROM pg_database WHERE datname = current_database());
    server feed_server;
    first bigint;
    reserved timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(7283400026);
    first := pg_sequence_last_value('feed_reserved'::regclass);
    SELECT * INTO server FROM feed_server;
    reserved := feed_time(setval('feed_reserved', greatest(
        feed_micros(clock_timestamp() - interval '100 milliseconds'),
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

-- feed_locked returns the oldest time that is locked, or null. A transaction that began before the first feed_reserve
-- after a break may have locked a time within it: the watermark then stays before the break.
CREATE OR REPLACE FUNCTION feed_locked() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT least(l.oldest, (SELECT min(feed_micros(b.after_at)) FROM feed_breaks b
                            WHERE feed_micros(b.after_at) < l.oldest AND l.oldest < feed_micros(b.before_at)))
    FROM (SELECT min(((classid::bigint & 4095) << 32 | objid::bigint) * 1000) AS oldest FROM pg_locks
          WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = 388821
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) l
$function$;

-- feed_ahead reports whether a position of the feed is ahead of this database: it was issued after the moment to which the
-- database was restored.
CREATE FUNCTION feed_ahead(at timestamptz) RETURNS boolean
STABLE LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT at > coalesce((SELECT reserved_at FROM feed_server), 'infinity')
        OR EXISTS (SELECT FROM feed_breaks WHERE after_at < at AND at < before_at)
$function$;

-- +goose Down
DROP FUNCTION feed_ahead(timestamptz);
CREATE OR REPLACE FUNCTION feed_locked() RETURNS bigint
LANGUAGE sql AS $function$
    SELECT min(((classid::bigint & 4095) << 32 | objid::bigint) * 1000) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = 388821
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$function$;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION feed_reserve() RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock(7283400026);
    RETURN feed_time(setval('feed_reserved', greatest(
        feed_micros(clock_timestamp() - interval '100 milliseconds'),
        pg_sequence_last_value('feed_reserved'::regclass) + 1000)));
END
$function$;
-- +goose StatementEnd
DROP TABLE feed_breaks;
DROP TABLE feed_server;
