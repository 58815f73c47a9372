-- SettingLocal sets one parameter of the server until the transaction ends.
-- name: SettingLocal :exec
SELECT set_config(@name::text, @value::text, true);

-- DatabaseInfo is empty where the extension was not created.
-- name: DatabaseInfo :one
SELECT extversion::text AS version, current_setting('timescaledb.license')::text AS license
FROM pg_extension WHERE extname = 'timescaledb';
