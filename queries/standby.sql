-- The queries that decide whether a standby may serve a read. None of them reads the data of a team.

-- PositionGet returns the position of the primary: its database, its timeline, how far the log is on disk, and its end,
-- before which are also commits that were acknowledged before they were on disk (synchronous_commit = off).
-- name: PositionGet :one
SELECT ((SELECT (pg_control_system()).system_identifier))::bigint AS system_id,
       ((SELECT ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer))::integer AS timeline,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS flushed,
       (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS inserted;

-- StandbyGet returns whether a server is a standby, of which database, on which timeline, and how far it has replayed
-- the log. The timeline of a standby is the one that its WAL receiver streams: the server ends the receiver before it
-- replays any other. The timeline is read after the position, because it only rises. It is 0 without a receiver. A role
-- without pg_read_all_stats sees only that there is a receiver: the timeline is then that of the last restart point, or of
-- what was written to disk since, which may be behind for some minutes after a promotion.
-- name: StandbyGet :one
SELECT pg_is_in_recovery()::boolean AS in_recovery,
       ((SELECT (pg_control_system()).system_identifier))::bigint AS system_id,
       (CASE WHEN w.pid IS NULL AND pg_is_in_recovery() THEN 0
        ELSE coalesce(w.received_tli, greatest((SELECT (pg_control_checkpoint()).timeline_id),
            (SELECT (pg_control_recovery()).min_recovery_end_timeline))) END)::integer AS timeline,
       coalesce(r.lsn - '0/0'::pg_lsn, 0)::bigint AS replayed
FROM (SELECT pg_last_wal_replay_lsn() AS lsn OFFSET 0) r
LEFT JOIN pg_catalog.pg_stat_wal_receiver w ON true;

-- StandbyGetSettings returns the settings of a standby that decide how often it cancels reads, and how long reads delay
-- the log, in milliseconds; -1 is unbounded.
-- name: StandbyGetSettings :one
SELECT (current_setting('hot_standby_feedback') = 'on')::boolean AS feedback,
       (CASE current_setting('max_standby_streaming_delay') WHEN '-1' THEN -1
        ELSE extract(epoch FROM current_setting('max_standby_streaming_delay')::interval) * 1000 END)::bigint AS max_delay_ms;
