-- +goose Up

-- idempotency_keys holds the responses to PATCH requests that succeeded, for 24 hours (spec 8, idempotency rules).
CREATE TABLE idempotency_keys (
    key_id          text NOT NULL REFERENCES api_keys (key_id),
    method          text NOT NULL,
    path            text NOT NULL,
    idempotency_key text NOT NULL,
    body_sha256     bytea NOT NULL,
    response        bytea NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key_id, method, path, idempotency_key)
);
CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at);

-- idempotency_bytes counts the bytes of the large responses that an API key stored in idempotency_keys, by hour. It
-- limits what a key can store: one small change of a device with all tags stores 100 KB.
CREATE TABLE idempotency_bytes (
    key_id text NOT NULL REFERENCES api_keys (key_id),
    hour   timestamptz NOT NULL,
    bytes  bigint NOT NULL,
    PRIMARY KEY (key_id, hour)
);

-- rate_windows is a ring of 600 rows per API key, which are overwritten in place: the n-th request that was allowed,
-- counted from 0, is in slot n % 600. Both tables are unlogged: the limit survives a restart, and a crash only empties
-- them. The fill factors leave room in each page for new versions of its rows.
CREATE UNLOGGED TABLE rate_windows (
    key_id text,
    slot   integer,
    hit_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, slot)
) WITH (fillfactor = 80);

-- rate_counters counts the requests of a key that were allowed (passed), and those of them that are known to be older
-- than ten minutes (over). Its row is the lock that serializes the requests of a key. last_hit_at is the time of the
-- newest request that was allowed. It shows which keys are idle, and whether the clock stepped back. It has no index, so
-- that an update of the row stays in its page.
CREATE UNLOGGED TABLE rate_counters (
    key_id      text PRIMARY KEY,
    passed      bigint NOT NULL,
    over        bigint NOT NULL,
    last_hit_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- rate_window_search returns the first n in [first, past) whose request came after a time, or past if there is none.
-- Times ascend with n. The answer is usually near first, so the search doubles its steps before it halves the interval:
-- it reads 1 row if first is the answer, and at most 20 of 600. A row that is missing counts as old.
-- +goose StatementBegin
CREATE FUNCTION rate_window_search(for_key_id text, first bigint, past bigint, after timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    most CONSTANT integer := 600;
    step bigint := 1;
    middle bigint;
BEGIN
    WHILE first < past LOOP
        middle := least(first + step - 1, (first + past) / 2);
        PERFORM FROM rate_windows WHERE key_id = for_key_id AND slot = middle % most AND hit_at > after;
        IF FOUND THEN
            past := middle;
        ELSE
            first := middle + 1;
            step := step * 2;
        END IF;
    END LOOP;
    RETURN past;
END
$function$;
-- +goose StatementEnd

-- rate_window_hits counts some requests of a key, of which the first ones are allowed: at most 600 in any ten minutes
-- (decision 25). remaining and reset_seconds apply after all of them. It reads the clock after it locked the row, so
-- that times ascend whichever process came first. If the clock stepped back, it forgets the requests that are in the
-- future now, which would deny others for longer than ten minutes. A denied request changes nothing.
--
-- A session plans these statements once. If rate_windows is empty then, as after a quiet night, the plan would read the
-- whole table for each request until it is analyzed again, when it may have thousands of rows. Each statement reads one
-- row by the primary key, so that no other plan is ever better.
-- +goose StatementBegin
CREATE FUNCTION rate_window_hits(for_key_id text, hits integer,
    OUT allowed integer, OUT remaining integer, OUT reset_seconds double precision)
LANGUAGE plpgsql SET enable_seqscan = off AS $function$
DECLARE
    most CONSTANT integer := 600;
    width CONSTANT interval := '10 minutes';
    at timestamptz;
    oldest timestamptz;
    key_passed bigint;
    key_over bigint;
    key_last_hit_at timestamptz;
BEGIN
    SELECT passed, over, last_hit_at INTO key_passed, key_over, key_last_hit_at
    FROM rate_counters WHERE key_id = for_key_id FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_counters AS c (key_id, passed, over) VALUES (for_key_id, 0, 0)
        ON CONFLICT (key_id) DO UPDATE SET passed = c.passed
        RETURNING passed, over, last_hit_at INTO key_passed, key_over, key_last_hit_at;
    END IF;
    at := clock_timestamp();
    IF key_last_hit_at > at THEN
        key_passed := rate_window_search(for_key_id, key_over, key_passed, at);
    END IF;
    SELECT hit_at INTO oldest FROM rate_windows WHERE key_id = for_key_id AND slot = key_over % most;
    IF key_over = key_passed OR oldest IS NULL OR oldest <= at - width THEN
        key_over := rate_window_search(for_key_id, key_over, key_passed, at - width);
        SELECT hit_at INTO oldest FROM rate_windows
        WHERE key_id = for_key_id AND slot = key_over % most AND key_over < key_passed;
    END IF;
    allowed := least(hits, most - (key_passed - key_over));
    IF allowed = 1 THEN -- Apart from the general case, which takes 40 µs more.
        INSERT INTO rate_windows (key_id, slot, hit_at) VALUES (for_key_id, key_passed % most, at)
        ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at;
    ELSIF allowed > 1 THEN
        INSERT INTO rate_windows (key_id, slot, hit_at)
        SELECT for_key_id, n % most, at FROM generate_series(key_passed, key_passed + allowed - 1) n
        ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at;
    END IF;
    IF allowed > 0 THEN
        key_passed := key_passed + allowed;
        UPDATE rate_counters SET passed = key_passed, over = key_over, last_hit_at = at WHERE key_id = for_key_id;
    END IF;
    remaining := most - (key_passed - key_over);
    reset_seconds := extract(epoch FROM coalesce(oldest, at) + width - at);
END
$function$;
-- +goose StatementEnd
