-- +goose Up

-- devices holds the devices of all teams. Each upload updates a row. With space for a second version on the same page, the
-- update is a HOT update: it changes no index, and the next one reuses the space.
--
-- latest_bucket_at bounds the search for the newest reading of a device, so that it need not read every chunk. Workers
-- move it forward in the transaction that stores a later reading. It can be too late, because readings can be deleted.
-- Other programs do not change it, so that the ranges of foreign_writes must be searched as well.
--
-- While merge_version stays the same, workers have only added readings after the newest one. /devices/current then needs
-- only the readings after the newest one that it has.
CREATE TABLE devices (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id          uuid NOT NULL REFERENCES teams (id),
    hardware_id      text NOT NULL,
    display_name     text,
    metadata         jsonb NOT NULL DEFAULT '{}',
    firmware_version text,
    firmware_at      timestamptz,
    last_seen_at     timestamptz,
    rssi_dbm         integer,
    signal_bars      smallint CHECK (signal_bars BETWEEN 0 AND 5),
    signal_at        timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now(),
    latest_bucket_at timestamptz,
    merge_version    bigint NOT NULL DEFAULT 0,
    CONSTRAINT devices_metadata_check CHECK (
        jsonb_typeof(metadata) = 'object'
        AND NOT jsonb_path_exists(metadata, '$.* ? (@.type() != "string")')
    )
) WITH (fillfactor = 50);
CREATE INDEX devices_team_id_idx ON devices (team_id, id);
COMMENT ON COLUMN devices.hardware_id IS 'the hardware unit that is installed in the device, or else the last one that was';
COMMENT ON COLUMN devices.signal_at IS 'arrival of the upload that rssi_dbm and signal_bars come from';
COMMENT ON COLUMN devices.firmware_at IS 'arrival of the upload that firmware_version comes from';
COMMENT ON COLUMN devices.latest_bucket_at IS
    'no reading is later, except in foreign_writes; -infinity: there is none; null: unknown, until a worker finds it';
COMMENT ON COLUMN devices.merge_version IS 'the last transaction that changed a reading at or before the newest one';

-- device_hardware records which hardware unit was installed in which device in [installed_at, removed_at); null means
-- unbounded (decision 40).
CREATE TABLE device_hardware (
    hardware_id  text NOT NULL,
    device_id    uuid NOT NULL REFERENCES devices (id),
    installed_at timestamptz,
    removed_at   timestamptz,
    CONSTRAINT device_hardware_interval_check CHECK (removed_at > installed_at),
    CONSTRAINT device_hardware_one_device EXCLUDE USING gist (
        hardware_id WITH =, tstzrange(installed_at, removed_at) WITH &&),
    CONSTRAINT device_hardware_one_unit EXCLUDE USING gist (
        device_id WITH =, tstzrange(installed_at, removed_at) WITH &&)
);
-- Workers look up the installations of every unit of a batch. Reading the GiST index of the exclusion constraint takes
-- several times as long as reading a B-tree, but the planner expects the same costs. With another collation than the
-- column, the constraint's index cannot serve a query that names this one.
CREATE INDEX device_hardware_unit_idx ON device_hardware (hardware_id COLLATE "C");

-- assignments records what a device measures in [started_at, ended_at): a place, or the room of an athlete.
CREATE TABLE assignments (
    id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    device_id      uuid NOT NULL REFERENCES devices (id),
    type           text NOT NULL CHECK (type IN ('athlete', 'place')),
    label          text NOT NULL,
    home_or_travel text NOT NULL DEFAULT 'home' CHECK (home_or_travel IN ('home', 'travel')),
    external_ref   text,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    CONSTRAINT assignments_interval_check CHECK (ended_at > started_at),
    CONSTRAINT assignments_no_overlap EXCLUDE USING gist (
        device_id WITH =, tstzrange(started_at, ended_at) WITH &&)
);
CREATE INDEX assignments_device_id_idx ON assignments (device_id, started_at DESC, id);
-- Lists of devices look up the open assignment of each device. The GiST index of the exclusion constraint takes several
-- times as long as a B-tree or a hash index. The planner expects a B-tree to cost as much as the GiST index, and a hash
-- index to cost less.
CREATE INDEX assignments_open_idx ON assignments USING hash (device_id) WHERE ended_at IS NULL;

-- device_details is a device with its open assignment, as the API shows it. assignment_id and the three columns after it
-- are null without one.
CREATE VIEW device_details AS
SELECT d.id, d.team_id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;
