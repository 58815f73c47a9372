-- +goose Up
CREATE EXTENSION IF NOT EXISTS timescaledb;
-- btree_gist lets an exclusion constraint compare an id for equality and a range for overlap.
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- natural_order sorts names as people expect it: "room 9" before "Room 10".
CREATE COLLATION natural_order (provider = icu, locale = 'und-u-kn-true');

-- advisory_lock names every advisory lock of the service. A wrong name is an error. New locks are appended, because old
-- and new processes run side by side during an upgrade. Two locks have keys of their own: goose locks its session while
-- it migrates, and feed_key returns the keys of the change feed, which are above 2^44.
CREATE TYPE advisory_lock AS ENUM (
    'edition',           -- ensure_readings_hourly, ensure_readings_layout, ensure_chunk_interval
    'roles',             -- EnsureRoles
    'order_chunk',
    'feed_reserve',
    'audit_purge',       -- audit_expire, audit_trim
    'rate_window_purge',
    'idempotency_purge',
    'reject_trim', 'opened_chunks'
);

-- lock_key returns the key of an advisory lock.
CREATE FUNCTION lock_key(lock advisory_lock) RETURNS bigint
STABLE LANGUAGE sql AS 'SELECT 7283400000 + array_position(enum_range(NULL::advisory_lock), lock)';

-- teams own devices, keys and people. The columns from time_zone on are what the people of a team configure. time_zone is
-- an IANA name, by whose clocks the night begins and ends. limits has the limits of each metric by its name, and the rules
-- that replace them for some devices: {"temp_c": {"low": {"warn": 16, "bad": 14}, "high": {"warn": 24}},
-- "rules": [{"tag": "kind=dorm", "metric": "co2_ppm", "limit": {"high": {"warn": 900}}}]}.
-- The columns alert_* have the rules of alerts, in minutes or percent; 0 switches a rule off. mail_at is when the morning
-- mail is sent, and mail_weekday the day of the weekly summary: 0 is Sunday.
CREATE TABLE teams (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    time_zone   text NOT NULL DEFAULT 'UTC',
    night_start time NOT NULL DEFAULT '22:00'
        CHECK (night_start < '24:00' AND night_start = date_trunc('minute', night_start)),
    night_end   time NOT NULL DEFAULT '07:00'
        CHECK (night_end < '24:00' AND night_end = date_trunc('minute', night_end)),
    limits      jsonb NOT NULL
        DEFAULT '{"co2_ppm": {"high": {"warn": 1000, "bad": 1400}},
                  "temp_c": {"low": {"warn": 16, "bad": 14}, "high": {"warn": 24, "bad": 27}},
                  "humidity_pct": {"low": {"warn": 20}, "high": {"warn": 70}},
                  "spl_db": {"high": {"warn": 45, "bad": 55}}}'
        CHECK (jsonb_typeof(limits) = 'object'),
    alert_silent       integer NOT NULL DEFAULT 180 CHECK (alert_silent BETWEEN 0 AND 10080),
    alert_bad          integer NOT NULL DEFAULT 20 CHECK (alert_bad BETWEEN 0 AND 1440),
    alert_bad_at_night boolean NOT NULL DEFAULT false,
    alert_coverage     integer NOT NULL DEFAULT 80 CHECK (alert_coverage BETWEEN 0 AND 100),
    alert_rejects      integer NOT NULL DEFAULT 60 CHECK (alert_rejects BETWEEN 0 AND 1440),
    mail_at            time NOT NULL DEFAULT '07:30' CHECK (mail_at < '24:00' AND mail_at = date_trunc('minute', mail_at)),
    mail_weekday       smallint NOT NULL DEFAULT 1 CHECK (mail_weekday BETWEEN 0 AND 6),
    keep_days          integer CHECK (keep_days BETWEEN 1 AND 36500),
    CONSTRAINT night_not_empty CHECK (night_start <> night_end)
);
COMMENT ON COLUMN teams.keep_days IS 'the retention of the readings of its devices, see expiring_devices; null: none';

-- api_keys holds the keys of the API, with a hash of each secret; the secret itself is not stored.
CREATE TABLE api_keys (
    key_id        text PRIMARY KEY,
    team_id       uuid NOT NULL REFERENCES teams (id),
    secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
    scope         text NOT NULL DEFAULT 'read' CHECK (scope IN ('read', 'read_write')),
    label         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    made_by       uuid
);
COMMENT ON COLUMN api_keys.made_by IS 'the person who created or replaced the key; null for an operator';
CREATE INDEX api_keys_team_id_idx ON api_keys (team_id);

-- ingest_keys holds the credentials with which devices and gateways upload. The receiver accepts them, the API does not.
-- It is not one table with api_keys, because the API must not read upload credentials, and workers and receivers must not
-- read API keys (roles/grants.sql).
--
-- changed_in is the transaction that inserted or last updated a key. A receiver reads the keys that changed since its last
-- query by it: a transaction that had not committed when that query ran is at or above the oldest running transaction of
-- the query's snapshot. created_at and revoked_at do not show that, because they are set before the commit.
CREATE TABLE ingest_keys (
    key_id        text PRIMARY KEY,
    team_id       uuid NOT NULL REFERENCES teams (id),
    secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
    label         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    revoked_at    timestamptz,
    changed_in    bigint NOT NULL DEFAULT 0,
    expires_at    timestamptz,
    made_by       uuid,
    source_id     uuid
);
COMMENT ON COLUMN ingest_keys.source_id IS 'the source at which the key is valid, and nowhere else; null: valid for uploads';
COMMENT ON COLUMN ingest_keys.made_by IS 'the person who created or replaced the key; null for an operator';
CREATE INDEX ingest_keys_team_id_idx ON ingest_keys (team_id);
CREATE INDEX ingest_keys_changed_in_idx ON ingest_keys (changed_in);

-- +goose StatementBegin
CREATE FUNCTION ingest_key_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER ingest_key_changed BEFORE INSERT OR UPDATE ON ingest_keys
    FOR EACH ROW EXECUTE FUNCTION ingest_key_changed();

-- api_key_uses and ingest_key_uses have when a key was last used, to the minute, and by which client. They are tables of
-- their own because an update of ingest_keys makes every receiver read the key again, and because api_keys and
-- ingest_keys then change only when a person changes a key.
CREATE TABLE api_key_uses (
    key_id  text PRIMARY KEY REFERENCES api_keys (key_id) ON DELETE CASCADE,
    used_at timestamptz NOT NULL,
    client  text
) WITH (fillfactor = 50);
CREATE TABLE ingest_key_uses (
    key_id  text PRIMARY KEY REFERENCES ingest_keys (key_id) ON DELETE CASCADE,
    used_at timestamptz NOT NULL,
    client  text
) WITH (fillfactor = 50);
COMMENT ON COLUMN api_key_uses.client IS 'the User-Agent of the request, shortened; null if it had none';
COMMENT ON COLUMN ingest_key_uses.client IS 'the User-Agent of the request, shortened; null if it had none';

-- service_secrets holds what all replicas share. The first process that needs a secret creates it.
CREATE TABLE service_secrets (
    name       text PRIMARY KEY,
    secret     bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- receiver_secrets has the secret of the cursors of receivers. The API has another one (service_secrets), which receivers
-- and workers must not read.
CREATE TABLE receiver_secrets (
    name   text PRIMARY KEY,
    secret bytea NOT NULL
);

-- users are the people who sign in to the dashboard. password_hash is null until a person has set a password;
-- signed_out_at is when all of the person's sessions ended last. fahrenheit, hour12 and month_first are how the person reads
-- temperatures, times of day and dates; null is what the browser says.
CREATE TABLE users (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    email         text NOT NULL,
    display_name  text NOT NULL DEFAULT '',
    password_hash text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    disabled_at   timestamptz,
    signed_out_at timestamptz,
    fahrenheit    boolean,
    hour12        boolean,
    month_first   boolean
);
CREATE UNIQUE INDEX users_email_key ON users (lower(email));

CREATE TABLE memberships (
    user_id    uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id    uuid NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    role       text NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, team_id)
);
CREATE INDEX memberships_team_id_idx ON memberships (team_id);

-- sign_in_links holds the links with which people join a team (invitation) or set another password (reset). The token
-- itself is not stored. made_by is the admin of the team who made the link; null for a link of an operator. A reset of an
-- operator belongs to no team.
CREATE TABLE sign_in_links (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    user_id      uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id      uuid REFERENCES teams (id) ON DELETE CASCADE,
    role         text CHECK (role IN ('viewer', 'editor', 'admin')),
    made_by      uuid REFERENCES users (id) ON DELETE CASCADE,
    purpose      text NOT NULL CHECK (purpose IN ('invitation', 'reset')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT sign_in_links_team_check CHECK (CASE purpose
        WHEN 'invitation' THEN team_id IS NOT NULL AND role IS NOT NULL
        ELSE role IS NULL AND (team_id IS NULL) = (made_by IS NULL) END)
);
CREATE INDEX sign_in_links_user_id_idx ON sign_in_links (user_id);
CREATE INDEX sign_in_links_team_id_idx ON sign_in_links (team_id);
CREATE INDEX sign_in_links_made_by_idx ON sign_in_links (made_by);
CREATE INDEX sign_in_links_expires_at_idx ON sign_in_links (expires_at);

-- open_links has the links that can be used now. What an admin may grant is checked when the link is used, and not only
-- when it is made: the maker must still be an admin of the team, and a reset needs a person who belongs to that team and
-- to no other one, because whoever sets the password can sign in to all teams of the person.
CREATE VIEW open_links AS
SELECT l.*
FROM sign_in_links l JOIN users u ON u.id = l.user_id
WHERE l.used_at IS NULL AND l.expires_at > now() AND u.disabled_at IS NULL
  AND (l.made_by IS NULL
       OR EXISTS (SELECT FROM memberships m JOIN users maker ON maker.id = m.user_id
                  WHERE m.team_id = l.team_id AND m.user_id = l.made_by AND m.role = 'admin' AND maker.disabled_at IS NULL)
          AND (l.purpose = 'invitation'
               OR ARRAY[l.team_id] = ARRAY(SELECT m.team_id FROM memberships m WHERE m.user_id = l.user_id)));

-- forget_invited deletes a person who was only invited, when a transaction that deleted the last link commits: without a
-- password and a team, nothing is left that the row is for, unless it keeps a disabled person out.
-- +goose StatementBegin
CREATE FUNCTION forget_invited() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM users u
    WHERE u.id = OLD.user_id AND u.password_hash IS NULL AND u.disabled_at IS NULL
      AND NOT EXISTS (SELECT FROM memberships m WHERE m.user_id = u.id)
      AND NOT EXISTS (SELECT FROM sign_in_links l WHERE l.user_id = u.id);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION forget_invited() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER forget_invited AFTER DELETE ON sign_in_links DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION forget_invited();

-- sessions holds those of the dashboard by the hash of their token. A session that ended stays, expired, until it is
-- purged: a request that began before cannot store it again.
CREATE TABLE sessions (
    token_hash text PRIMARY KEY,
    data       bytea NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_expires_at_idx ON sessions (expires_at);

-- sign_in_attempts counts attempts to sign in, by the hash of an account, of an address, or of both together. It and
-- sign_in_addresses are unlogged: a crash only empties them.
CREATE UNLOGGED TABLE sign_in_attempts (
    key_sha256 bytea PRIMARY KEY,
    attempts   integer NOT NULL,
    began_at   timestamptz NOT NULL
);
CREATE INDEX sign_in_attempts_began_at_idx ON sign_in_attempts (began_at);

-- sign_in_addresses holds the addresses from which people signed in. From these, attempts of others do not lock them
-- out.
CREATE UNLOGGED TABLE sign_in_addresses (
    user_id        uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    address_sha256 bytea NOT NULL,
    signed_in_at   timestamptz NOT NULL,
    PRIMARY KEY (user_id, address_sha256)
);
CREATE INDEX sign_in_addresses_signed_in_at_idx ON sign_in_addresses (signed_in_at);
