-- OpenedChunkLock makes the transactions that count the chunks of teams wait for each other.
-- name: OpenedChunkLock :exec
SELECT pg_advisory_xact_lock(lock_key('opened_chunks'));

-- OpenedChunkInsert records chunks of a team, unless it would have more than most of them today. It returns whether it
-- does, and deletes the chunks of earlier days. OpenedChunkLock comes before it.
-- name: OpenedChunkInsert :one
WITH today AS (SELECT (now() AT TIME ZONE 'UTC')::date AS day),
     expired AS (
         DELETE FROM opened_chunks o USING today t WHERE o.team_id = @team_id::uuid AND o.opened_on <> t.day
     ),
     allowed AS (
         SELECT t.day, count(o.starts_at) + cardinality(@starts_at::timestamptz[]) <= @most::bigint AS is_allowed
         FROM today t
         LEFT JOIN opened_chunks o
             ON o.team_id = @team_id::uuid AND o.opened_on = t.day AND o.starts_at <> ALL (@starts_at::timestamptz[])
         GROUP BY t.day
     ),
     opened AS (
         INSERT INTO opened_chunks (team_id, opened_on, starts_at)
         SELECT @team_id::uuid, a.day, s.starts_at
         FROM allowed a, unnest(@starts_at::timestamptz[]) AS s (starts_at)
         WHERE a.is_allowed
         ON CONFLICT DO NOTHING
     )
SELECT is_allowed::boolean AS is_allowed FROM allowed;
