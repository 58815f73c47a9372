-- +goose Up

-- Lists of devices look up the open assignment of each device. Reading the GiST index of the exclusion constraint takes
-- several times as long as reading another one. For an equality, the planner expects the same costs of a B-tree, but lower
-- ones of a hash index.
CREATE INDEX assignments_open_idx ON assignments USING hash (device_id) WHERE ended_at IS NULL;

-- +goose Down
DROP INDEX assignments_open_idx;
