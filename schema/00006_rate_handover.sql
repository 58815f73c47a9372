-- +goose Up

-- The next migration gives rate_windows other columns. A request that waits for
-- it meanwhile runs the function of before and finds the columns of after: then
-- it starts over with the function of after. So that all that wait know to do
-- so, this is a migration of its own.
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

-- +goose Down
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
END
$function$;
-- +goose StatementEnd
