-- +goose Up

-- users are the people who sign in to the dashboard. password_hash is null until a person has set a password;
-- signed_out_at is when all of the person's sessions ended last.
CREATE TABLE users (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    email         text NOT NULL,
    display_name  text NOT NULL DEFAULT '',
    password_hash text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    disabled_at   timestamptz,
    signed_out_at timestamptz
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
-- itself is not stored.
CREATE TABLE sign_in_links (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    user_id      uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    team_id      uuid REFERENCES teams (id) ON DELETE CASCADE,
    role         text CHECK (role IN ('viewer', 'editor', 'admin')),
    purpose      text NOT NULL CHECK (purpose IN ('invitation', 'reset')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT sign_in_links_invitation_check CHECK (
        (purpose = 'invitation') = (team_id IS NOT NULL) AND (team_id IS NULL) = (role IS NULL))
);
CREATE INDEX sign_in_links_user_id_idx ON sign_in_links (user_id);
CREATE INDEX sign_in_links_team_id_idx ON sign_in_links (team_id);
CREATE INDEX sign_in_links_expires_at_idx ON sign_in_links (expires_at);

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

-- +goose Down
DROP TABLE sign_in_addresses;
DROP TABLE sign_in_attempts;
DROP TABLE sessions;
DROP TABLE sign_in_links;
DROP TABLE memberships;
DROP TABLE users;
