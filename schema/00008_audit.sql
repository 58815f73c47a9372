-- +goose Up

-- audit_log records who changed what, in the transaction of the change. Triggers write it, so that no program can change
-- these tables without an entry. It has no foreign keys: an entry outlives its team, device and person. The roles of the
-- processes may read it or nothing; only its owner may change it.
CREATE TABLE audit_log (
    id            uuid NOT NULL DEFAULT gen_random_uuid(),
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind    text NOT NULL CHECK (actor_kind IN ('person', 'api_key', 'operator', 'sql')),
    actor         text NOT NULL,
    user_id       uuid,
    database_user text NOT NULL DEFAULT session_user,
    team_id       uuid,
    action        text NOT NULL CHECK (action IN ('create', 'change', 'delete')),
    object_kind   text NOT NULL,
    object_id     text NOT NULL,
    object_name   text,
    device_id     uuid,
    device_name   text,
    before        jsonb,
    after         jsonb,
    reason        text,
    PRIMARY KEY (at, id)
);
COMMENT ON COLUMN audit_log.actor IS 'address of the person, id of the API key, name of the user who ran the command, or database user';
COMMENT ON COLUMN audit_log.database_user IS 'who was logged in to the database, whatever the program says in actor';
COMMENT ON COLUMN audit_log.device_id IS 'the device, or the device of the assignment or installation';
COMMENT ON COLUMN audit_log.before IS 'of a change only what differs; null for a creation';
COMMENT ON COLUMN audit_log.reason IS 'what the actor wrote about the change; null for nothing';
CREATE INDEX audit_log_team_idx ON audit_log (team_id, at, id);
-- For the limits of the changes of people: an entry of a replay is not one of them, because there may be many (audit_trim).
CREATE INDEX audit_log_person_idx ON audit_log (user_id, at) WHERE actor_kind = 'person' AND object_kind <> 'reject';
CREATE INDEX audit_log_people_idx ON audit_log (team_id, at) WHERE actor_kind = 'person' AND object_kind <> 'reject';

-- audit_value returns what the log keeps of a value: of an object such as tags only the members that differ from another
-- value, and of long texts the beginning. The log must stay small: an API key can change a device 86,000 times a day, and
-- the tags of a device can have 100 KB. So a side of an entry has 1 KB at most, or 3 KB in characters of four bytes.
-- +goose StatementBegin
CREATE FUNCTION audit_value(value jsonb, other jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $function$
DECLARE
    differing jsonb := value;
    most integer;
BEGIN
    CASE jsonb_typeof(value)
    WHEN 'object' THEN
        IF jsonb_typeof(other) = 'object' THEN
            SELECT coalesce(jsonb_object_agg(m.key, m.value), '{}') INTO differing
            FROM jsonb_each(value) m WHERE m.value IS DISTINCT FROM other -> m.key;
        END IF;
        IF octet_length(differing::text) > 1000 THEN
            most := 20;
            SELECT jsonb_object_agg(m.key, left(m.value, most) || CASE WHEN length(m.value) > most THEN '…' ELSE '' END)
                FILTER (WHERE m.place <= 10)
                || CASE WHEN count(*) > 10 THEN jsonb_build_object('…', (count(*) - 10) || ' more') ELSE '{}' END
            INTO differing FROM (SELECT *, row_number() OVER (ORDER BY key) AS place FROM jsonb_each_text(differing)) m;
        END IF;
    WHEN 'string' THEN
        most := 200;
        IF length(value #>> '{}') > most THEN
            differing := to_jsonb(left(value #>> '{}', most) || '…');
        ELSIF value #>> '{}' ~ '^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$' THEN
            differing := to_jsonb(replace(value #>> '{}', '+00:00', 'Z')); -- A time, as the API writes it.
        END IF;
    ELSE
    END CASE;
    RETURN differing;
END
$function$;
-- +goose StatementEnd

-- audit_record writes the entry of a row. The arguments of its trigger are the kind of the object, the column of its id,
-- and the columns that are recorded: a column that is not listed there, such as a hash, never gets into the log. A change
-- of other columns is no entry. roomsensor.actor and roomsensor.reason are what the program says about the actor and the
-- change. A row of reading_deletions is the deletion of readings. The function runs with the rights of its owner, so that
-- programs need no right to write the log.
-- +goose StatementBegin
CREATE FUNCTION audit_record() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC' AS $function$
DECLARE
    old_row constant jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row constant jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    present constant jsonb := coalesce(new_row, old_row);
    actor constant jsonb := nullif(current_setting('roomsensor.actor', true), '')::jsonb;
    action constant text := CASE WHEN TG_OP = 'DELETE' OR TG_ARGV[0] = 'readings' THEN 'delete'
                                 WHEN TG_OP = 'INSERT' THEN 'create' ELSE 'change' END;
    entry audit_log;
BEGIN
    SELECT jsonb_object_agg(c.name, audit_value(old_row -> c.name, new_row -> c.name))
               FILTER (WHERE new_row IS NOT NULL OR old_row -> c.name <> 'null'),
           jsonb_object_agg(c.name, audit_value(new_row -> c.name, old_row -> c.name))
               FILTER (WHERE old_row IS NOT NULL OR new_row -> c.name <> 'null')
    INTO entry.before, entry.after
    FROM unnest(TG_ARGV[2:]) c(name)
    WHERE old_row -> c.name IS DISTINCT FROM new_row -> c.name;
    IF old_row -> 'password_hash' IS DISTINCT FROM new_row -> 'password_hash' AND TG_OP = 'UPDATE' THEN
        entry.after := coalesce(entry.after, '{}') || '{"password": "changed"}';
    END IF;
    IF TG_OP = 'UPDATE' AND entry.after IS NULL THEN
        RETURN NULL;
    END IF;

    entry.object_name := coalesce(present ->> 'email', present ->> 'display_name', present ->> 'label',
        present ->> 'name', present ->> 'hardware_id', present ->> 'reason');
    IF TG_ARGV[0] = 'team' THEN
        entry.team_id := present ->> 'id';
    ELSE
        entry.team_id := present ->> 'team_id';
    END IF;
    IF TG_ARGV[0] = 'device' THEN
        entry.device_id := present ->> 'id';
        entry.device_name := entry.object_name;
    ELSIF present ? 'device_id' THEN
        entry.device_id := present ->> 'device_id';
        SELECT d.team_id, coalesce(d.display_name, d.hardware_id) INTO entry.team_id, entry.device_name
        FROM devices d WHERE d.id = entry.device_id;
    ELSIF present ? 'user_id' THEN
        SELECT u.email INTO entry.object_name FROM users u WHERE u.id = (present ->> 'user_id')::uuid;
    END IF;
    IF TG_ARGV[0] = 'readings' THEN
        entry.before := entry.after;
        entry.object_name := entry.device_name;
    END IF;

    INSERT INTO audit_log (actor_kind, actor, user_id, team_id, action, object_kind, object_id, object_name,
        device_id, device_name, before, after, reason)
    VALUES (coalesce(actor ->> 'kind', 'sql'), coalesce(actor ->> 'name', session_user), (actor ->> 'user_id')::uuid,
        entry.team_id, action, TG_ARGV[0], present ->> TG_ARGV[1], entry.object_name, entry.device_id, entry.device_name,
        CASE WHEN action <> 'create' THEN entry.before END, CASE WHEN action <> 'delete' THEN entry.after END,
        left(nullif(current_setting('roomsensor.reason', true), ''), 200));
    RETURN NULL;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_record() FROM PUBLIC;

-- The columns after UPDATE OF keep the frequent updates of workers from calling the function. A migration that adds a
-- column which people change replaces the trigger of its table.
CREATE TRIGGER audit
    AFTER INSERT OR DELETE OR UPDATE OF name, time_zone, night_start, night_end, limits, alert_silent, alert_bad,
        alert_bad_at_night, alert_coverage, alert_rejects, mail_at, mail_weekday, keep_days ON teams
    FOR EACH ROW EXECUTE FUNCTION audit_record('team', 'id', 'name', 'time_zone', 'night_start', 'night_end', 'limits',
        'alert_silent', 'alert_bad', 'alert_bad_at_night', 'alert_coverage', 'alert_rejects', 'mail_at', 'mail_weekday',
        'keep_days');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF team_id, hardware_id, display_name, metadata, retired_at, sampling,
    keep_days ON devices
    FOR EACH ROW EXECUTE FUNCTION audit_record('device', 'id', 'team_id', 'hardware_id', 'display_name', 'metadata', 'retired_at',
        'sampling', 'keep_days');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE ON device_hardware
    FOR EACH ROW EXECUTE FUNCTION audit_record('installation', 'hardware_id',
        'device_id', 'hardware_id', 'installed_at', 'removed_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE ON assignments
    FOR EACH ROW EXECUTE FUNCTION audit_record('assignment', 'id',
        'device_id', 'type', 'label', 'home_or_travel', 'external_ref', 'started_at', 'ended_at');
-- Not of author_id, which the deletion of an account clears.
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF device_id, assignment_id, at, text ON notes
    FOR EACH ROW EXECUTE FUNCTION audit_record('note', 'id', 'device_id', 'assignment_id', 'at', 'text');
CREATE TRIGGER audit AFTER INSERT ON shared_links
    FOR EACH ROW EXECUTE FUNCTION audit_record('shared_link', 'id', 'night', 'assignment_id', 'device_ids', 'expires_at');
CREATE TRIGGER audit_deleted AFTER DELETE ON shared_links
    FOR EACH ROW WHEN (OLD.expires_at > now())
    EXECUTE FUNCTION audit_record('shared_link', 'id', 'night', 'assignment_id', 'device_ids', 'expires_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF team_id, scope, label, expires_at, revoked_at ON api_keys
    FOR EACH ROW EXECUTE FUNCTION audit_record('api_key', 'key_id', 'scope', 'label', 'expires_at', 'revoked_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF team_id, label, expires_at, revoked_at ON ingest_keys
    FOR EACH ROW EXECUTE FUNCTION audit_record('ingest_key', 'key_id', 'label', 'expires_at', 'revoked_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF email, display_name, password_hash, disabled_at, signed_out_at
    ON users FOR EACH ROW EXECUTE FUNCTION audit_record('user', 'id', 'email', 'display_name', 'disabled_at', 'signed_out_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE ON memberships
    FOR EACH ROW EXECUTE FUNCTION audit_record('membership', 'user_id', 'role');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OF role, expires_at, used_at ON sign_in_links
    FOR EACH ROW EXECUTE FUNCTION audit_record('sign_in_link', 'user_id', 'purpose', 'role', 'expires_at', 'used_at');
-- Not the links that expired or were used, which a process deletes after some time.
CREATE TRIGGER audit_deleted AFTER DELETE ON sign_in_links
    FOR EACH ROW WHEN (OLD.used_at IS NULL AND OLD.expires_at > now())
    EXECUTE FUNCTION audit_record('sign_in_link', 'user_id', 'purpose', 'role', 'expires_at', 'used_at');
CREATE TRIGGER audit AFTER INSERT ON reading_deletions
    FOR EACH ROW EXECUTE FUNCTION audit_record('readings', 'device_id', 'deleted_from', 'deleted_to', 'readings', 'samples');
CREATE TRIGGER audit AFTER UPDATE OF replayed_at ON rejected_uploads
    FOR EACH ROW EXECUTE FUNCTION audit_record('reject', 'id', 'replayed_at');

-- audit_expire deletes at most @most entries older than keep, and at least 30 days old: the role that may call it must
-- not be able to delete what it did today. Another caller at the same time deletes nothing.
-- +goose StatementBegin
CREATE FUNCTION audit_expire(keep interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    deleted bigint := 0;
BEGIN
    IF pg_try_advisory_xact_lock(lock_key('audit_purge')) THEN
        DELETE FROM audit_log WHERE (at, id) IN (
            SELECT l.at, l.id FROM audit_log l
            WHERE l.at < now() - greatest(keep, interval '30 days') ORDER BY l.at LIMIT most);
        GET DIAGNOSTICS deleted = ROW_COUNT;
    END IF;
    RETURN deleted;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_expire(interval, integer) FROM PUBLIC;

-- audit_trim deletes at most @most of the entries with which the API keys of a team, and the replays of rejects by its
-- people, exceed 250,000 entries or 250 MB, the oldest first: a program that changes tags, or replays the same rejects, in a
-- loop must not fill the disk. The size is estimated from the newest 1,000 entries. What people and operators do else is
-- never deleted early, so that nobody can flush it out of the log: the number of changes of people is limited instead
-- (AuditCountRecent).
-- +goose StatementBegin
CREATE FUNCTION audit_trim(of_team uuid, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
DECLARE
    kept constant bigint := least(250000, 250e6 / (
        SELECT avg(pg_column_size(n)) FROM (
            SELECT * FROM audit_log l
            WHERE l.team_id = of_team AND (l.actor_kind = 'api_key' OR l.actor_kind = 'person' AND l.object_kind = 'reject')
            ORDER BY l.at DESC, l.id DESC LIMIT 1000) n));
    deleted bigint := 0;
BEGIN
    IF pg_try_advisory_xact_lock(lock_key('audit_purge')) THEN
        DELETE FROM audit_log WHERE (at, id) IN (
            SELECT l.at, l.id FROM audit_log l
            WHERE l.team_id = of_team AND (l.actor_kind = 'api_key' OR l.actor_kind = 'person' AND l.object_kind = 'reject')
            ORDER BY l.at DESC, l.id DESC OFFSET kept LIMIT most);
        GET DIAGNOSTICS deleted = ROW_COUNT;
    END IF;
    RETURN deleted;
END
$function$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit_trim(uuid, integer) FROM PUBLIC;
