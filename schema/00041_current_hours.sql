-- +goose Up

-- current_hours has the sums of whole hours of the last day that /devices/current has read of each device, so that no
-- process reads them again after a start or in the next hour: internal/store/current_hours.go. It is a cache that the
-- database may lose in a crash, and that no standby needs. Therefore it is not logged. A row is exact as long as
-- merge_version of the device is the same, no other program has changed readings since (writers is a hash of
-- reading_writers and of the id of this table), and the chunks of its readings, whose ids sums has too, exist.
CREATE UNLOGGED TABLE current_hours (
    device_id     uuid PRIMARY KEY REFERENCES devices ON DELETE CASCADE,
    hours_from    timestamptz NOT NULL,
    hours_to      timestamptz NOT NULL,
    merge_version bigint NOT NULL,
    writers       bigint NOT NULL,
    sums          bytea NOT NULL
);
-- A row has 2.3 kB. PostgreSQL would compress rows of more than 2 kB.
ALTER TABLE current_hours ALTER sums SET STORAGE PLAIN;
CREATE INDEX current_hours_hours_to_idx ON current_hours (hours_to);

-- +goose Down
DROP TABLE current_hours;
