-- SettingSet sets a parameter of the server until the transaction ends.
-- name: SettingSet :exec
SELECT set_config(@name::text, @value::text, true);

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
