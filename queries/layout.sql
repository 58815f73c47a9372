-- LayoutGet reports how the readings are stored. What the edition does not support is null; an age of 0 means never.
-- name: LayoutGet :one
SELECT l.chunks::bigint AS chunks, l.bytes::bigint AS bytes,
       l.columnstore_chunks, l.columnstore_bytes_before, l.columnstore_bytes,
       l.materialized_until, l.refreshed_at,
       coalesce(extract(epoch FROM l.columnstore_after), 0)::bigint AS columnstore_after_seconds,
       coalesce(extract(epoch FROM l.drop_after), 0)::bigint AS drop_after_seconds,
       extract(epoch FROM d.time_interval)::bigint AS chunk_interval_seconds
FROM readings_layout() l, timescaledb_information.dimensions d
WHERE d.hypertable_schema = 'public' AND d.hypertable_name = 'readings';

-- ChunkListRanges reads the length of new chunks of readings and the ranges of the existing ones, in ascending order.
-- name: ChunkListRanges :one
SELECT extract(epoch FROM d.time_interval)::bigint AS interval_seconds,
       ARRAY(SELECT c.range_start FROM timescaledb_information.chunks c
             WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings'
             ORDER BY c.range_start)::timestamptz[] AS range_starts,
       ARRAY(SELECT c.range_end FROM timescaledb_information.chunks c
             WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings'
             ORDER BY c.range_start)::timestamptz[] AS range_ends
FROM timescaledb_information.dimensions d
WHERE d.hypertable_schema = 'public' AND d.hypertable_name = 'readings';
