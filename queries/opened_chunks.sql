-- OpenedChunkLock makes the transactions that count the chunks of teams wait for each other. The day is that after the wait.
-- name: OpenedChunkLock :exec
SELECT pg_advisory_xact_lock(lock_key('opened_chunks'));

-- OpenedChunkList lists the chunks of a team that were recorded today. OpenedChunkLock comes before it.
-- name: OpenedChunkList :many
SELECT starts_at FROM opened_chunks WHERE team_id = @team_id::uuid AND opened_on = (clock_timestamp() AT TIME ZONE 'UTC')::date;

-- OpenedChunkInsert records chunks of a team today, and deletes those of earlier days. OpenedChunkList comes before it.
-- name: OpenedChunkInsert :exec
WITH expired AS (
    DELETE FROM opened_chunks WHERE team_id = @team_id::uuid AND opened_on < (clock_timestamp() AT TIME ZONE 'UTC')::date
)
INSERT INTO opened_chunks (team_id, opened_on, starts_at)
SELECT @team_id::uuid, (clock_timestamp() AT TIME ZONE 'UTC')::date, unnest(@starts_at::timestamptz[]);
