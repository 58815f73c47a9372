-- +goose Up

-- past_version is the last transaction of a worker that may have changed readings of the device before the hour of its
-- newest reading. While it stays the same, the API need not read those hours again.
ALTER TABLE devices ADD COLUMN past_version bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN devices.past_version IS 'the last transaction that changed readings before the hour of the newest one';

-- No query filters by these arrays. To analyze them took a tenth of the processor time of a database with 3,000 uploads per
-- second.
ALTER TABLE feed_batches ALTER device_ids SET STATISTICS 0, ALTER first_at SET STATISTICS 0,
    ALTER last_at SET STATISTICS 0, ALTER days SET STATISTICS 0;

-- +goose Down
ALTER TABLE feed_batches ALTER device_ids SET STATISTICS -1, ALTER first_at SET STATISTICS -1,
    ALTER last_at SET STATISTICS -1, ALTER days SET STATISTICS -1;
ALTER TABLE devices DROP COLUMN past_version;
