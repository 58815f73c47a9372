-- +goose Up

-- devices holds the devices of all teams.
CREATE TABLE devices (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id      uuid NOT NULL REFERENCES teams (id),
    hardware_id  text NOT NULL,
    display_name text,
    metadata     jsonb NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT now(),
    retired_at   timestamptz,
    sampling     text NOT NULL DEFAULT 'whole' CHECK (sampling IN ('whole', 'mean', 'was_mean')),
    keep_days    integer CHECK (keep_days BETWEEN 1 AND 36500),
    CONSTRAINT devices_metadata_check CHECK (
        jsonb_typeof(metadata) = 'object'
        AND NOT jsonb_path_exists(metadata, '$.* ? (@.type() != "string")')
    )
);
CREATE UNIQUE INDEX devices_team_id_idx ON devices (team_id, id);
COMMENT ON COLUMN devices.hardware_id IS 'the hardware unit that is installed in the device, or else the last one that was';
COMMENT ON COLUMN devices.retired_at IS 'since when the device is in no list and no count; it has no unit and no open assignment then';
COMMENT ON COLUMN devices.keep_days IS 'the retention of its readings, in place of that of the team; null: that of the team';
COMMENT ON COLUMN devices.sampling IS 'what a reading is: the last measurement of its bucket, or the mean of the samples; was_mean: whole, and older buckets may have samples';

-- device_state has what workers write with every upload, apart from devices, whose rows are larger and change seldom: the
-- last arrival, the signal, the firmware, and a copy of the newest reading. Each device has one row, also one that was
-- inserted with SQL.
--
-- The copy of the newest reading is exact when a transaction commits. A worker writes it in the statement that moves the
-- other columns forward (DeviceHeartbeatUpdate). For transactions of other programs, a trigger compares it with the readings
-- at the commit (refresh_device_state). What triggers do not see, as in a session with session_replication_role = replica,
-- takes SELECT refresh_device_state('-infinity', 'infinity').
--
-- With space for a second version on the same page, an update is a HOT update: it changes no index, and the next one reuses
-- the space.
CREATE TABLE device_state (
    device_id        uuid PRIMARY KEY REFERENCES devices ON DELETE CASCADE,
    last_seen_at     timestamptz,
    rssi_dbm         integer,
    signal_bars      smallint CHECK (signal_bars BETWEEN 0 AND 5),
    signal_at        timestamptz,
    firmware_version text,
    firmware_at      timestamptz,
    readings_version bigint NOT NULL DEFAULT 0,
    late_version     bigint NOT NULL DEFAULT 0,
    bucket_at        timestamptz,
    co2_ppm          real,
    temp_c           real,
    humidity_pct     real,
    lux              real,
    spl_db           real,
    ingested_at      timestamptz,
    chunk            integer,
    sampled          boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
COMMENT ON COLUMN device_state.signal_at IS 'arrival of the upload that rssi_dbm and signal_bars come from';
COMMENT ON COLUMN device_state.firmware_at IS 'arrival of the upload that firmware_version comes from';
COMMENT ON COLUMN device_state.readings_version IS 'the last transaction of a worker that changed readings of the device';
COMMENT ON COLUMN device_state.late_version IS
    'the last of these that may have changed one before the hour of the newest reading';
COMMENT ON COLUMN device_state.bucket_at IS 'the newest reading; null: there is none';
COMMENT ON COLUMN device_state.sampled IS
    'the device may have samples: sampling is not whole. A worker that read it before sees it in the row that it locks';
COMMENT ON COLUMN device_state.chunk IS 'the number of the chunk of the newest reading (chunk_number); the reading is gone once the chunk is dropped';

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

-- notes records what people write about a device, or about a person, at a time. A note about a person has an assignment that
-- names the person, so that it follows corrections of the name. The same note twice is one: a form may be sent again.
CREATE TABLE notes (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id       uuid NOT NULL,
    device_id     uuid NOT NULL,
    assignment_id uuid REFERENCES assignments ON DELETE CASCADE,
    at            timestamptz NOT NULL,
    text          text NOT NULL CHECK (length(text) BETWEEN 1 AND 500),
    author_id     uuid REFERENCES users ON DELETE SET NULL,
    FOREIGN KEY (team_id, device_id) REFERENCES devices (team_id, id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT notes_once UNIQUE NULLS NOT DISTINCT (device_id, assignment_id, at, text)
);
CREATE INDEX notes_team_id_idx ON notes (team_id, at);
CREATE INDEX notes_assignment_id_idx ON notes (assignment_id);
CREATE INDEX notes_author_id_idx ON notes (author_id);
COMMENT ON COLUMN notes.device_id IS 'the device, or that of the assignment';
COMMENT ON COLUMN notes.assignment_id IS 'an assignment of the person; null for a note about the device';

-- shared_links holds the links with which anybody sees one thing of a team without an account: a night, the newest nights of
-- a person (an assignment names the person), or devices as they are now. The token itself is not stored.
CREATE TABLE shared_links (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    token_sha256  bytea NOT NULL UNIQUE CHECK (octet_length(token_sha256) = 32),
    team_id       uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
    made_by       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    night         date,
    assignment_id uuid REFERENCES assignments ON DELETE CASCADE,
    device_ids    uuid[],
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL,
    CHECK (num_nonnulls(night, assignment_id, device_ids) = 1)
);
CREATE INDEX shared_links_team_id_idx ON shared_links (team_id, expires_at);
CREATE INDEX shared_links_made_by_idx ON shared_links (made_by);
CREATE INDEX shared_links_assignment_id_idx ON shared_links (assignment_id);

-- open_shares has the shared links that can be used now: their makers must still be allowed to share.
CREATE VIEW open_shares AS
SELECT s.*, maker.email AS maker
FROM shared_links s
JOIN memberships m ON m.team_id = s.team_id AND m.user_id = s.made_by
JOIN users maker ON maker.id = s.made_by
WHERE s.expires_at > now() AND m.role IN ('editor', 'admin') AND maker.disabled_at IS NULL;

-- device_details is a device with its state and its open assignment, as the API shows it. assignment_id and the four
-- columns after it are null without one.
CREATE VIEW device_details AS
SELECT d.id, d.team_id, d.hardware_id, d.display_name, s.firmware_version, d.metadata,
       s.last_seen_at, s.rssi_dbm, s.signal_bars,
       a.id AS assignment_id, a.type AS assignment_type, a.label, a.started_at, a.external_ref,
       d.retired_at
FROM devices d
LEFT JOIN device_state s ON s.device_id = d.id
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;
