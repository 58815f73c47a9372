-- +goose Up

-- merge_version is the last transaction of a worker that may have changed other readings of the device than by adding
-- newer ones. While it stays the same, the API needs only the readings after the newest one that it has.
ALTER TABLE devices ADD COLUMN merge_version bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN devices.merge_version IS 'the last transaction that changed a reading at or before the newest one';
ALTER TABLE devices DROP COLUMN past_version;

-- +goose Down
ALTER TABLE devices ADD COLUMN past_version bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN devices.past_version IS 'the last transaction that changed readings before the hour of the newest one';
ALTER TABLE devices DROP COLUMN merge_version;
