-- The queries of the command doctor. None of them reads the data of a team.

-- ServerGet returns the settings of the server on which the guarantees of ingest depend, and what its role may see of
-- its state.
-- name: ServerGet :one
SELECT current_setting('server_version')::text AS version,
       (current_setting('fsync') = 'on')::boolean AS syncs,
       (current_setting('full_page_writes') = 'on')::boolean AS writes_full_pages,
       (current_setting('data_checksums') = 'on')::boolean AS has_checksums,
       (SELECT coalesce(sum(checksum_failures) FILTER (WHERE checksum_last_failure > now() - interval '1 day'), 0)::bigint
        FROM pg_stat_database) AS checksum_failures,
       pg_is_in_recovery()::boolean AS is_standby,
       clock_timestamp()::timestamptz AS clock,
       (SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::bigint FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'
          AND pid <> pg_backend_pid()) AS oldest_transaction_seconds,
       pg_size_bytes(current_setting('shared_buffers'))::bigint AS shared_buffers_bytes,
       (SELECT count(*) FROM postponed_chunks) AS postponed_chunks,
       (SELECT count(*) FROM device_hardware WHERE removed_at IS NULL) AS devices;

-- ChunkGetNewest returns the size of the newest chunk of readings that is full, and the length of its range. It returns
-- no row if there is none.
-- name: ChunkGetNewest :one
SELECT extract(epoch FROM c.range_end - c.range_start)::bigint AS seconds,
       pg_total_relation_size(format('%I.%I', c.chunk_schema, c.chunk_name)::regclass)::bigint AS bytes,
       pg_indexes_size(format('%I.%I', c.chunk_schema, c.chunk_name)::regclass)::bigint AS index_bytes
FROM timescaledb_information.chunks c
WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings' AND c.range_end <= now()
ORDER BY c.range_end DESC
LIMIT 1;

-- JobListFailed lists the jobs of TimescaleDB whose last run failed, or which should have run an hour ago. The Apache
-- edition has a job that always fails, because it needs the other edition.
-- name: JobListFailed :many
SELECT j.job_id, j.application_name::text AS name, coalesce(s.last_run_status, 'never ran')::text AS last_run
FROM timescaledb_information.jobs j
JOIN timescaledb_information.job_stats s ON s.job_id = j.job_id
WHERE j.scheduled
  AND (current_setting('timescaledb.license') = 'timescale' OR j.hypertable_name IS NOT NULL)
  AND (s.last_run_status = 'Failed' OR s.next_start < now() - interval '1 hour')
ORDER BY j.job_id;

-- BlockerList lists the sessions of the database that others wait for, but that wait for no other one, the ones that
-- block most first.
-- A wait of the service ends with its lock_timeout, so what counts is the duration of the transaction of the session,
-- if the role may see that, and the longest wait for it. Names are empty, and the state is unknown, where the role may
-- not see them.
-- name: BlockerList :many
SELECT a.pid::integer AS pid, coalesce(a.usename, '')::text AS role_name,
       coalesce(a.application_name, '')::text AS application, coalesce(a.state, 'unknown')::text AS state, w.waiting,
       extract(epoch FROM greatest(clock_timestamp() - a.xact_start, w.longest))::bigint AS seconds
FROM (
    SELECT b.pid, count(DISTINCT b.waiter) AS waiting, max(clock_timestamp() - b.since) AS longest
    FROM (
        SELECT unnest(pg_blocking_pids(pg_locks.pid)) AS pid, pg_locks.pid AS waiter, waitstart AS since
        FROM pg_locks
        WHERE NOT granted
    ) b
    GROUP BY b.pid
) w
JOIN pg_stat_activity a ON a.pid = w.pid
WHERE a.datname = current_database() AND cardinality(pg_blocking_pids(a.pid)) = 0
  AND greatest(clock_timestamp() - a.xact_start, w.longest) > make_interval(secs => @seconds::double precision)
ORDER BY w.waiting DESC, a.pid;

-- OwnerGet returns who owns the database and its tables, and whether the owner of the tables may create more of them,
-- which the next version may need. Before the first migration, the role of the session is the owner.
-- name: OwnerGet :one
SELECT o.name::text AS table_owner, pg_get_userbyid(d.datdba)::text AS database_owner,
       has_schema_privilege(o.name, 'public', 'CREATE')::boolean AS may_create,
       format('ALTER DATABASE %I OWNER TO %I', d.datname, o.name)::text AS repair
FROM pg_database d, (
    SELECT coalesce((SELECT tableowner FROM pg_tables WHERE schemaname = 'public' AND tablename = 'teams'), current_user) AS name
) o
WHERE d.datname = current_database();

-- RestoredGet returns the newest arrival of an upload that is stored, the newest change of people and commands, and how
-- many sessions, links and waiting mails there are.
-- name: RestoredGet :one
SELECT (SELECT coalesce(max(last_seen_at), 'epoch') FROM device_state)::timestamptz AS stored_at,
       (SELECT coalesce(max(at), 'epoch') FROM audit_log)::timestamptz AS changed_at,
       ((SELECT count(*) FROM sessions) + (SELECT count(*) FROM sign_in_links) + (SELECT count(*) FROM shared_links)
        + (SELECT count(*) FROM mails WHERE done_at IS NULL))::bigint AS sessions;

-- ArchiverGet returns the state of the archive of the write-ahead log: whether there is one, when a segment was archived
-- last, the epoch for never, and what failed since then.
-- name: ArchiverGet :one
SELECT (current_setting('archive_mode') <> 'off')::boolean AS archives,
       coalesce(last_archived_time, 'epoch')::timestamptz AS archived_at,
       coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)::boolean AS fails,
       coalesce(last_failed_wal, '')::text AS segment, failed_count::bigint AS failures
FROM pg_stat_archiver;

-- SessionsSeen reports whether the role sees what the sessions of other roles do.
-- name: SessionsSeen :one
SELECT pg_has_role('pg_read_all_stats', 'USAGE')::boolean;

-- TableLock locks all tables of the service, as statements that write do, until the transaction ends. It leaves out the
-- chunks of readings and samples: there can be thousands, and maintenance locks one at a time.
-- name: TableLock :exec
LOCK TABLE teams, users, memberships, sessions, sign_in_links, sign_in_attempts, sign_in_addresses, api_keys,
    api_key_uses, ingest_keys, ingest_key_uses, service_secrets, receiver_secrets, devices, device_state, device_hardware,
    assignments, notes, shared_links, sources, source_state, source_hours, unit_aliases, ONLY readings, ONLY samples,
    idempotency_keys, idempotency_bytes, rate_windows, rate_counters, streams, stream_shares, rejected_uploads, reject_usage,
    foreign_writes, feed_batches, feed_days, feed_state, feed_breaks, feed_server, reading_deletions, retention_state,
    postponed_chunks, opened_chunks, ordered_chunks, audit_log, alerts, alert_rounds, mails, mail_choices
    IN ROW EXCLUSIVE MODE;

-- LockHolderList lists the sessions that lock a whole table, with the table.
-- name: LockHolderList :many
SELECT l.pid::int AS pid, c.relname::text AS table_name
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND c.relnamespace = 'public'::regnamespace
  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
ORDER BY l.pid, c.relname;

-- RowsTry writes about a megabyte, for which the disk must have room. The caller rolls it back.
-- name: RowsTry :exec
INSERT INTO postponed_chunks (chunk, postponed_until, time_limit)
SELECT i || repeat(' doctor', 150), now(), '0' FROM generate_series(1, 1000) i;

-- TableSizeList lists the tables, the largest first, with their size on disk in bytes, indexes and chunks included, and
-- about how many rows they have.
-- name: TableSizeList :many
SELECT t.tablename::text AS name,
       coalesce(hypertable_size(format('public.%I', t.tablename)::regclass),
                pg_total_relation_size(format('public.%I', t.tablename)::regclass))::bigint AS bytes,
       approximate_row_count(format('public.%I', t.tablename)::regclass)::bigint AS row_count
FROM pg_tables t WHERE t.schemaname = 'public' ORDER BY bytes DESC, name;
