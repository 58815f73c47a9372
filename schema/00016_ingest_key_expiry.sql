-- +goose Up

-- expires_at ends the validity of a key, such as that of a key that another one replaces; null means never.
ALTER TABLE ingest_keys ADD COLUMN expires_at timestamptz;

-- +goose Down
ALTER TABLE ingest_keys DROP COLUMN expires_at;
