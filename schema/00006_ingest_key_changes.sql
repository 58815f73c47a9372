-- +goose Up

-- changed_in is the transaction that inserted or last updated a key. A receiver reads the keys that changed since its
-- last query by it: a transaction that had not committed for one query is at or above the oldest running transaction of
-- that query's snapshot. created_at and revoked_at do not show that, because they are set before the commit. Keys
-- from before this migration have 0 and are read with all others at the start of a receiver.
ALTER TABLE ingest_keys ADD COLUMN changed_in bigint NOT NULL DEFAULT 0;
CREATE INDEX ingest_keys_changed_in_idx ON ingest_keys (changed_in);

-- +goose StatementBegin
CREATE FUNCTION ingest_key_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER ingest_key_changed BEFORE INSERT OR UPDATE ON ingest_keys
    FOR EACH ROW EXECUTE FUNCTION ingest_key_changed();

-- +goose Down
DROP TRIGGER ingest_key_changed ON ingest_keys;
DROP FUNCTION ingest_key_changed();
ALTER TABLE ingest_keys DROP COLUMN changed_in;
