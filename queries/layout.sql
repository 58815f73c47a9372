-- LayoutGet reports how the readings are stored. What the edition does not support is null; an age of 0 means never.
-- name: LayoutGet :one
SELECT l.chunks::bigint AS chunks, l.bytes::bigint AS bytes,
       l.columnstore_chunks, l.columnstore_bytes_before, l.columnstore_bytes,
       l.materialized_until, l.refreshed_at,
       coalesce(extract(epoch FROM l.columnstore_after), 0)::bigint AS columnstore_after_seconds,
       coalesce(extract(epoch FROM l.drop_after), 0)::bigint AS drop_after_seconds
FROM readings_layout() l;
