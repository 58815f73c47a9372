-- +goose Up

-- Answers to PATCH requests that ran, for 24 hours (spec 8, idempotency rules).
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

-- The times of the requests that each key had granted within the last ten
-- minutes, ascending. Unlogged: the limit survives a restart, and a crash
-- merely empties it. PLAIN, because 600 times are 4.8 kB, which would
-- otherwise be compressed or moved out of line at every request.
CREATE UNLOGGED TABLE rate_windows (
    key_id text PRIMARY KEY,
    hits   timestamptz[] NOT NULL
);
ALTER TABLE rate_windows ALTER COLUMN hits SET STORAGE PLAIN;

-- rate_window_hit counts one request of a key, or denies it: at most 600 pass
-- in any ten minutes. The clock is read after the row is locked, so that times
-- ascend whichever process came first; a denied request leaves no trace.
-- +goose StatementBegin
CREATE FUNCTION rate_window_hit(for_key_id text,
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
END
$function$;
-- +goose StatementEnd

-- What could not be stored, whole and with the reason. A message of the queue
-- is identified by its time and its sequence, as a stream made anew counts
-- from 1 again; with the reason they identify a reject, so that a redelivery
-- makes no second one.
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
DROP TABLE rate_windows;
DROP TABLE idempotency_keys;
