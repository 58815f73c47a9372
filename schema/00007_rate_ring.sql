-- +goose Up

-- A window was one row with up to 600 times: 4.8 kB, of which no second version
-- fits the page, so that every request took a new page and an entry of the
-- index. Now each key has a ring of 600 rows, which are overwritten in place.
ALTER TABLE rate_windows RENAME TO rate_windows_before;
ALTER TABLE rate_windows_before RENAME CONSTRAINT rate_windows_pkey TO rate_windows_before_pkey;

-- Request n of a key that passed, counted from 0, is in slot n % 600. Unlogged:
-- the limit survives a restart, and a crash merely empties both tables. The
-- room left in each page is for the next versions of its rows.
CREATE UNLOGGED TABLE rate_windows (
    key_id text,
    slot   integer,
    hit_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, slot)
) WITH (fillfactor = 80);

-- How many requests of a key passed, and how many of those are known to be
-- older than ten minutes. Its row is what requests of one key queue for.
CREATE UNLOGGED TABLE rate_counters (
    key_id text PRIMARY KEY,
    passed bigint NOT NULL,
    over   bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO rate_windows (key_id, slot, hit_at)
SELECT b.key_id, h.n - 1, h.at FROM rate_windows_before b, unnest(b.hits) WITH ORDINALITY h (at, n);
INSERT INTO rate_counters (key_id, passed, over) SELECT key_id, cardinality(hits), 0 FROM rate_windows_before;
DROP TABLE rate_windows_before;

-- rate_window_hit counts one request of a key, or denies it: at most 600 pass
-- in any ten minutes. The clock is read after the row is locked, so that times
-- ascend whichever process came first; a denied request leaves no trace. Each
-- time is looked at once more when it is over, whatever the size of the window.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION rate_window_hit(for_key_id text,
    OUT allowed boolean, OUT remaining integer, OUT reset_seconds double precision)
LANGUAGE plpgsql AS $function$
DECLARE
    most CONSTANT integer := 600;
    width CONSTANT interval := '10 minutes';
    at timestamptz;
    oldest timestamptz;
    key_passed bigint;
    key_over bigint;
BEGIN
    SELECT passed, over INTO key_passed, key_over FROM rate_counters WHERE key_id = for_key_id FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_counters (key_id, passed, over) VALUES (for_key_id, 0, 0) ON CONFLICT DO NOTHING;
        SELECT passed, over INTO key_passed, key_over FROM rate_counters WHERE key_id = for_key_id FOR UPDATE;
    END IF;
    at := clock_timestamp();
    oldest := at;
    WHILE key_over < key_passed LOOP
        SELECT hit_at INTO oldest FROM rate_windows WHERE key_id = for_key_id AND slot = key_over % most;
        EXIT WHEN oldest > at - width;
        key_over := key_over + 1;
        oldest := at;
    END LOOP;
    allowed := key_passed - key_over < most;
    IF allowed THEN
        INSERT INTO rate_windows (key_id, slot, hit_at) VALUES (for_key_id, key_passed % most, at)
        ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at;
        key_passed := key_passed + 1;
        UPDATE rate_counters SET passed = key_passed, over = key_over WHERE key_id = for_key_id;
    END IF;
    remaining := most - (key_passed - key_over);
    reset_seconds := least(600, extract(epoch FROM oldest + width - at));
END
$function$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE rate_counters;
ALTER TABLE rate_windows RENAME TO rate_windows_after;
ALTER TABLE rate_windows_after RENAME CONSTRAINT rate_windows_pkey TO rate_windows_after_pkey;
CREATE UNLOGGED TABLE rate_windows (
    key_id text PRIMARY KEY,
    hits   timestamptz[] NOT NULL
);
ALTER TABLE rate_windows ALTER COLUMN hits SET STORAGE PLAIN;
INSERT INTO rate_windows (key_id, hits)
SELECT key_id, array_agg(hit_at ORDER BY hit_at) FROM rate_windows_after GROUP BY key_id;
DROP TABLE rate_windows_after;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION rate_window_hit(for_key_id text,
    OUT allowed boolean, OUT remaining integer, OUT reset_seconds double precision)
LANGUAGE plpgsql AS $function$
DECLARE
    most CONSTANT integer := 600;
    width CONSTANT interval := '10 minutes';
    at timestamptz;
    counted timestamptz[];
BEGIN
    SELECT hits INTO counted FROM rate_windows WHERE key_id = for_key_id FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_windows (key_id, hits) VALUES (for_key_id, '{}') ON CONFLICT DO NOTHING;
        SELECT hits INTO counted FROM rate_windows WHERE key_id = for_key_id FOR UPDATE;
    END IF;
    at := clock_timestamp();
    counted := ARRAY(SELECT hit FROM unnest(counted) hit WHERE hit > at - width ORDER BY hit);
    allowed := cardinality(counted) < most;
    IF allowed THEN
        counted := counted || at;
        UPDATE rate_windows SET hits = counted WHERE key_id = for_key_id;
    END IF;
    remaining := most - cardinality(counted);
    reset_seconds := least(600, extract(epoch FROM counted[1] + width - at));
EXCEPTION WHEN undefined_column THEN
    EXECUTE 'SELECT * FROM rate_window_hit($1)' INTO allowed, remaining, reset_seconds USING for_key_id;
END
$function$;
-- +goose StatementEnd
