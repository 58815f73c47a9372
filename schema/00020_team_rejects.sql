-- +goose Up

-- receiver_secrets has the secret of the cursors of receivers. The API has another one (service_secrets), which receivers
-- and workers must not read.
CREATE TABLE receiver_secrets (
    name   text PRIMARY KEY,
    secret bytea NOT NULL
);

-- The rejects of a team by age: GET /rejects reads the newest, and the quota of the team deletes the oldest. The time is
-- an expression that no other index has: with received_at itself, the planner might read the unique index, which has the
-- rejects of all teams. The last two columns are filters, so that a page reads only those rows that it shows.
DROP INDEX rejected_uploads_team_idx;
CREATE INDEX rejected_uploads_team_idx
    ON rejected_uploads (reject_team(team_id), (received_at AT TIME ZONE 'UTC'), id, reason, hardware_id);

-- +goose Down
DROP INDEX rejected_uploads_team_idx;
CREATE INDEX rejected_uploads_team_idx ON rejected_uploads (reject_team(team_id), received_at, stream_sequence);
DROP TABLE receiver_secrets;
