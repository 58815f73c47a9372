-- +goose Up

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

-- The triggers come first: they wait for transactions that write rejects, and keep others out until the rejects of
-- version 0.1.0 are counted.
CREATE TRIGGER rejected_uploads_inserted AFTER INSERT ON rejected_uploads
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rejects();
CREATE TRIGGER rejected_uploads_deleted AFTER DELETE ON rejected_uploads
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rejects();
INSERT INTO reject_usage (team_id, rejects, bytes)
SELECT reject_team(team_id), count(*), sum(reject_bytes(payload, detail)) FROM rejected_uploads GROUP BY 1;

-- The oldest rejects of a team, which its quota deletes first.
CREATE INDEX rejected_uploads_team_idx ON rejected_uploads (reject_team(team_id), received_at, stream_sequence);

-- +goose Down
DROP INDEX rejected_uploads_team_idx;
DROP TRIGGER rejected_uploads_deleted ON rejected_uploads;
DROP TRIGGER rejected_uploads_inserted ON rejected_uploads;
DROP FUNCTION count_rejects();
DROP TABLE reject_usage;
DROP FUNCTION reject_team(uuid);
DROP FUNCTION reject_bytes(bytea, text);
