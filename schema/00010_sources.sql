-- +goose Up

-- sources take what devices and platforms send in their own formats. mapping has the members that replace those of the
-- format, as a JSON document; null: none. The credentials of a source are ingest keys with its id.
CREATE TABLE sources (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id     uuid NOT NULL REFERENCES teams (id),
    name        text NOT NULL,
    format      text NOT NULL,
    mapping     text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz,
    CONSTRAINT sources_name_key UNIQUE (team_id, name)
);

-- source_keys_changed makes receivers read the credentials of a source again, because they take its format, and whether it
-- is disabled, from there. The credentials of a deleted source are revoked: without it, they must not become credentials
-- that are valid elsewhere.
-- +goose StatementBegin
CREATE FUNCTION source_keys_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE ingest_keys
    SET revoked_at = CASE WHEN TG_OP = 'DELETE' THEN coalesce(revoked_at, now()) ELSE revoked_at END
    WHERE source_id = OLD.id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION source_keys_changed() FROM PUBLIC;
CREATE TRIGGER source_keys_changed AFTER DELETE OR UPDATE OF format, disabled_at ON sources
    FOR EACH ROW EXECUTE FUNCTION source_keys_changed();
CREATE INDEX ingest_keys_source_id_idx ON ingest_keys (source_id) WHERE source_id IS NOT NULL;

-- source_state has the newest message of each source, which people compare with the mapping. Workers write it every few
-- seconds, apart from the readings. message is null if it was too long, or had a name that was erased.
CREATE TABLE source_state (
    source_id        uuid PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    last_received_at timestamptz NOT NULL,
    message          bytea,
    precision        text NOT NULL
) WITH (fillfactor = 50);

-- source_hours counts what became of the messages of each source by the hour in which workers stored them, for two days.
-- A message that a worker stores again counts again, and what a killed worker counted last is missing.
CREATE TABLE source_hours (
    source_id uuid NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    hour      timestamptz NOT NULL,
    messages  bigint NOT NULL,
    stored    bigint NOT NULL,
    rejected  bigint NOT NULL,
    ignored   bigint NOT NULL,
    PRIMARY KEY (source_id, hour)
) WITH (fillfactor = 50);
COMMENT ON COLUMN source_hours.stored IS 'measurements that became readings';
COMMENT ON COLUMN source_hours.rejected IS 'rejects';
COMMENT ON COLUMN source_hours.ignored IS 'parts of messages that the mapping ignores';

-- unit_aliases has the names by which senders know units whose hardware id they do not use. alias_key is what aliases are
-- compared by: the hexadecimal digits of an alias that has such a form, otherwise the alias.
CREATE TABLE unit_aliases (
    team_id     uuid NOT NULL REFERENCES teams (id),
    alias_key   text NOT NULL,
    alias       text NOT NULL,
    hardware_id text NOT NULL,
    PRIMARY KEY (team_id, alias_key),
    CONSTRAINT unit_aliases_unit_key UNIQUE (team_id, hardware_id)
);

CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF name, format, mapping, disabled_at ON sources
    FOR EACH ROW EXECUTE FUNCTION audit_record('source', 'id', 'name', 'format', 'mapping', 'disabled_at');
CREATE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE ON unit_aliases
    FOR EACH ROW EXECUTE FUNCTION audit_record('alias', 'alias', 'alias', 'hardware_id');
