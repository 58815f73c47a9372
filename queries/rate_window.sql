-- The file name is singular because Go would build rate_windows.sql.go on Windows only.

-- RateWindowHit counts or denies requests: hits[i] requests of key_ids[i]. It returns a row per key in that order, with
-- the number of requests that are allowed and what applies after them (decision 25). The keys must be distinct and
-- ascend by their bytes, so that all replicas lock them in one order. With with_position, each row also has the position
-- of the primary up to which the log is on disk: a commit is acknowledged after that, so it has all commits that a client
-- can know of. Commits after it may be in the log already, but a standby would have to wait for them.
-- name: RateWindowHit :many
SELECT h.allowed::integer AS allowed, h.remaining::integer AS remaining, h.reset_seconds::double precision AS reset_seconds,
       (CASE WHEN @with_position::boolean THEN (SELECT (pg_control_system()).system_identifier) ELSE 0 END)::bigint AS system_id,
       (CASE WHEN @with_position::boolean
           THEN (SELECT ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer) ELSE 0 END)::integer AS timeline,
       (CASE WHEN @with_position::boolean THEN (SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn) ELSE 0 END)::bigint AS flushed
FROM unnest(@key_ids::text[]) WITH ORDINALITY k (id, place)
CROSS JOIN LATERAL rate_window_hits(k.id, (@hits::integer[])[k.place]) h
ORDER BY k.place;

-- RateWindowPurge deletes the requests of keys that had none in the last 10 minutes: of at most most_keys keys after a
-- key id, in the order of their ids. It returns their number and the last id. It deletes nothing while another process
-- runs it, and passes over a key of which a request is being counted.
-- name: RateWindowPurge :one
WITH idle AS MATERIALIZED (
    SELECT key_id FROM rate_counters
    WHERE key_id > @after::text AND last_hit_at < now() - INTERVAL '10 minutes'
      AND (SELECT pg_try_advisory_xact_lock(lock_key('rate_window_purge')))
    ORDER BY key_id LIMIT @most_keys::integer
    FOR UPDATE SKIP LOCKED
), emptied AS (
    DELETE FROM rate_windows WHERE key_id = ANY (ARRAY(SELECT key_id FROM idle))
), deleted AS (
    DELETE FROM rate_counters WHERE key_id = ANY (ARRAY(SELECT key_id FROM idle)) RETURNING key_id
)
SELECT count(*) AS keys, coalesce(max(key_id), '')::text AS last_key_id FROM deleted;
