-- +goose Up

-- api_key_uses and ingest_key_uses have when a key was last used, to the minute, and by which client. They are tables of
-- their own because an update of ingest_keys makes every receiver read the key again, and because api_keys and
-- ingest_keys then change only when a person changes a key.
CREATE TABLE api_key_uses (
    key_id  text PRIMARY KEY REFERENCES api_keys (key_id) ON DELETE CASCADE,
    used_at timestamptz NOT NULL,
    client  text
) WITH (fillfactor = 50);

CREATE TABLE ingest_key_uses (
    key_id  text PRIMARY KEY REFERENCES ingest_keys (key_id) ON DELETE CASCADE,
    used_at timestamptz NOT NULL,
    client  text
) WITH (fillfactor = 50);
COMMENT ON COLUMN api_key_uses.client IS 'the User-Agent of the request, shortened; null if it had none';
COMMENT ON COLUMN ingest_key_uses.client IS 'the User-Agent of the request, shortened; null if it had none';

-- +goose Down
DROP TABLE ingest_key_uses;
DROP TABLE api_key_uses;
