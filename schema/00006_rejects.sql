-- +goose Up

-- streams has the creation time of the stream of uploads, so that workers notice another one in its place: uploads that
-- were in the old stream and not yet stored are lost. The first worker records it.
CREATE TABLE streams (
    name       text PRIMARY KEY,
    created_at timestamptz NOT NULL
);

-- stream_shares estimates what each team has in the stream, so that workers delete stored uploads of the team with the
-- most when the stream is nearly full. A row is a stored upload that stands for some bytes of uploads of its team. The
-- nil id stands for uploads without a team.
CREATE TABLE stream_shares (
    stream_sequence bigint PRIMARY KEY,
    team_id         uuid NOT NULL,
    bytes           bigint NOT NULL
);

-- rejected_uploads holds what could not be stored, with the reason (decision 41). The arrival time and the sequence
-- identify a message of the queue (a stream that is recreated counts from 1 again); together with the reason and the unit
-- they identify a reject, so that a redelivery does not add a second one.
CREATE TABLE rejected_uploads (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    received_at     timestamptz NOT NULL,
    stream_sequence bigint NOT NULL,
    reason          text NOT NULL,
    detail          text NOT NULL,
    team_id         uuid,
    hardware_id     text,
    unit            text,
    source_id       uuid,
    precision       text NOT NULL DEFAULT '',
    payload         bytea NOT NULL,
    replayed_at     timestamptz,
    rejected_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rejected_uploads_message_key UNIQUE NULLS NOT DISTINCT (received_at, stream_sequence, reason, unit)
);
COMMENT ON COLUMN rejected_uploads.unit IS 'the unit as its sender names it: its hardware id or alias; null if none is known';
COMMENT ON COLUMN rejected_uploads.hardware_id IS 'of the unit; null if none is known, as of an unknown alias';
COMMENT ON COLUMN rejected_uploads.source_id IS 'the source of the message; null for an upload';
COMMENT ON COLUMN rejected_uploads.precision IS 'of times in the line protocol of a source; empty otherwise';

-- reject_bytes is the size that a reject counts with: payload and detail, and an estimate of the rest.
CREATE FUNCTION reject_bytes(payload bytea, detail text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $function$
    SELECT octet_length(payload) + octet_length(detail) + 300::bigint
$function$;

-- reject_team is the team whose quota a reject counts for. Rejects without a team count as a team of their own.
CREATE FUNCTION reject_team(team_id uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $function$
    SELECT coalesce(team_id, '00000000-0000-0000-0000-000000000000'::uuid)
$function$;

-- The rejects of a team by age: GET /rejects reads the newest, and the quota of the team deletes the oldest. The time is
-- an expression that no other index has: with received_at itself, the planner might read the unique index, which has the
-- rejects of all teams. The last two columns are filters, so that a page reads only those rows that it shows.
CREATE INDEX rejected_uploads_team_idx
    ON rejected_uploads (reject_team(team_id), (received_at AT TIME ZONE 'UTC'), id, reason, unit, hardware_id);
-- The rejects of a team by reason and unit, which the dashboard counts and replays. An index-only scan has all that it
-- needs.
CREATE INDEX rejected_uploads_group_idx ON rejected_uploads (team_id, reason, unit, received_at, id)
    INCLUDE (replayed_at, hardware_id, source_id) WHERE team_id IS NOT NULL;

-- reject_usage has the number and size of the rejects of each team (reject_team), so that the check of their quotas
-- does not read the rejects. Triggers keep it; team, payload and detail of a reject never change.
CREATE TABLE reject_usage (
    team_id uuid PRIMARY KEY,
    rejects bigint NOT NULL,
    bytes   bigint NOT NULL
) WITH (fillfactor = 50);

-- count_rejects runs with the rights of its owner, because it fires for every role that may write rejects. It locks the
-- teams in order, so that two transactions do not wait for each other.
-- +goose StatementBegin
CREATE FUNCTION count_rejects() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    sign integer := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
    INSERT INTO reject_usage AS u (team_id, rejects, bytes)
    SELECT reject_team(team_id), sign * count(*), sign * sum(reject_bytes(payload, detail))
    FROM changed GROUP BY 1 ORDER BY 1
    ON CONFLICT (team_id) DO UPDATE SET rejects = u.rejects + excluded.rejects, bytes = u.bytes + excluded.bytes;
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION count_rejects() FROM PUBLIC;

CREATE TRIGGER rejected_uploads_inserted AFTER INSERT ON rejected_uploads
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rejects();
CREATE TRIGGER rejected_uploads_deleted AFTER DELETE ON rejected_uploads
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rejects();
