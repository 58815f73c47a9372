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
-- than ten minutes (over). Its row is the lock that serializes the requests of a key.
CREATE UNLOGGED TABLE rate_counters (
    key_id text PRIMARY KEY,
    passed bigint NOT NULL,
    over   bigint NOT NULL
) WITH (fillfactor = 50);

-- rate_window_hit counts one request of a key, or denies it: at most 600 are allowed in any ten minutes (decision 25).
-- It reads the clock after it locked the row, so that times ascend whichever process came first. A denied request
-- changes nothing. Each entry is read once after it left the window, so that the cost does not grow with the window.
-- +goose StatementBegin
CREATE FUNCTION rate_window_hit(for_key_id text,
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

-- rejected_uploads holds what could not be stored, with the reason (decision 41). The arrival time and the sequence
-- identify a message of the queue (a stream that is recreated counts from 1 again); together with the reason they
-- identify a reject, so that a redelivery does not add a second one.
CREATE TABLE rejected_uploads (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    received_at     timestamptz NOT NULL,
    stream_sequence bigint NOT NULL,
    reason          text NOT NULL,
    detail          text NOT NULL,
    team_id         uuid,
    hardware_id     text,
    payload         bytea NOT NULL,
    replayed_at     timestamptz,
    rejected_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rejected_uploads_message_key UNIQUE (received_at, stream_sequence, reason)
);

-- +goose Down
DROP TABLE rejected_uploads;
DROP FUNCTION rate_window_hit(text);
DROP TABLE rate_counters;
DROP TABLE rate_windows;
DROP TABLE idempotency_keys;
