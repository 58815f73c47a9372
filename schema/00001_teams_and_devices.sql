-- +goose Up
CREATE EXTENSION IF NOT EXISTS timescaledb;
-- btree_gist lets an exclusion constraint compare an id for equality and a range for overlap.
CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE teams (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- api_keys holds the keys of the API, with a hash of each secret; the secret itself is not stored.
CREATE TABLE api_keys (
    key_id        text PRIMARY KEY,
    team_id       uuid NOT NULL REFERENCES teams (id),
    secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
    scope         text NOT NULL DEFAULT 'read' CHECK (scope IN ('read', 'read_write')),
    label         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz,
    revoked_at    timestamptz
);
CREATE INDEX api_keys_team_id_idx ON api_keys (team_id);

-- ingest_keys holds the credentials with which devices and gateways upload. The receiver accepts them, the API does
-- not.
CREATE TABLE ingest_keys (
    key_id        text PRIMARY KEY,
    team_id       uuid NOT NULL REFERENCES teams (id),
    secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
    label         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    revoked_at    timestamptz
);
CREATE INDEX ingest_keys_team_id_idx ON ingest_keys (team_id);

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
    CONSTRAINT devices_metadata_check CHECK (
        jsonb_typeof(metadata) = 'object'
        AND NOT jsonb_path_exists(metadata, '$.* ? (@.type() != "string")')
    )
);
CREATE INDEX devices_team_id_idx ON devices (team_id, id);
COMMENT ON COLUMN devices.hardware_id IS 'the hardware unit that is installed in the device, or else the last one that was';
COMMENT ON COLUMN devices.signal_at IS 'arrival of the upload that rssi_dbm and signal_bars come from';
COMMENT ON COLUMN devices.firmware_at IS 'arrival of the upload that firmware_version comes from';

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

-- service_secrets holds what all replicas share. The first process that needs a secret creates it.
CREATE TABLE service_secrets (
    name       text PRIMARY KEY,
    secret     bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- device_details is a device with its open assignment, as the API shows it. assignment_id and the three columns after
-- it are null without one.
CREATE VIEW device_details AS
SELECT d.id, d.team_id, d.hardware_id, d.display_name, d.firmware_version, d.metadata,
       d.last_seen_at, d.rssi_dbm, d.signal_bars,
       a.id AS assignment_id, a.label, a.started_at, a.external_ref
FROM devices d
LEFT JOIN assignments a ON a.device_id = d.id AND a.ended_at IS NULL;

-- +goose Down
DROP VIEW device_details;
DROP TABLE service_secrets;
DROP TABLE assignments;
DROP TABLE device_hardware;
DROP TABLE devices;
DROP TABLE ingest_keys;
DROP TABLE api_keys;
DROP TABLE teams;
