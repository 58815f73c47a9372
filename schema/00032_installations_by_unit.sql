-- +goose Up

-- Workers look up the installations of every unit of a batch. Reading the GiST index of the exclusion constraint takes
-- several times as long as reading a B-tree, but the planner expects the same costs. With another collation than the
-- column, the constraint's index cannot serve a query that names this one.
CREATE INDEX device_hardware_unit_idx ON device_hardware (hardware_id COLLATE "C");

-- +goose Down
DROP INDEX device_hardware_unit_idx;
