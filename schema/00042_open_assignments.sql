-- +goose Up

-- Lists of devices look up the open assignment of each device. The GiST index of the exclusion constraint takes several
-- times as long as a B-tree or a hash index. The planner expects a B-tree to cost as much as the GiST index, and a hash
-- index to cost less.
CREATE INDEX assignments_open_idx ON assignments USING hash (device_id) WHERE ended_at IS NULL;

-- +goose Down
DROP INDEX assignments_open_idx;
