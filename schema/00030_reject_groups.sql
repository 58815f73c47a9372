-- +goose Up

-- The rejects of a team by reason and unit, which the dashboard counts and replays. An index-only scan has all that it
-- needs.
CREATE INDEX rejected_uploads_group_idx ON rejected_uploads (team_id, reason, hardware_id, received_at, id)
    INCLUDE (replayed_at) WHERE team_id IS NOT NULL;

-- +goose Down
DROP INDEX rejected_uploads_group_idx;
