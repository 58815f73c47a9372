-- SettingsSet sets parameters of the server until the transaction ends: names[i] to setting_values[i].
-- name: SettingsSet :exec
SELECT set_config(s.name, (@setting_values::text[])[s.place], true)
FROM unnest(@names::text[]) WITH ORDINALITY s (name, place);

-- DatabaseGet returns no row if the extension does not exist.
-- name: DatabaseGet :one
SELECT extversion::text AS version, current_setting('timescaledb.license')::text AS license,
       (current_setting('is_superuser') = 'on')::boolean AS is_superuser,
       (current_setting('statement_timeout') <> '0' AND current_setting('synchronous_commit') <> 'off')::boolean AS is_bounded,
       current_setting('max_locks_per_transaction')::int AS max_locks
FROM pg_extension WHERE extname = 'timescaledb';

-- ChunkCount counts the chunks of all tables. It fails if the extension does not exist.
-- name: ChunkCount :one
SELECT count(*) FROM timescaledb_information.chunks;

-- DatabaseGetUsage reads the size of the database, and the connections to all databases of the server with how many
-- roles that are not superusers may have.
-- name: DatabaseGetUsage :one
SELECT pg_database_size(current_database())::bigint AS bytes,
       (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database)::bigint AS connections,
       (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::bigint
           AS max_connections;
