-- ReadingsLayout says how the readings lie on disk; what the edition does not
-- have is null, and an age that nothing reaches 0.
-- name: ReadingsLayout :one
SELECT l.chunks::bigint AS chunks, l.bytes::bigint AS bytes,
       l.columnstore_chunks, l.columnstore_bytes_before, l.columnstore_bytes,
       l.materialized_until, l.refreshed_at,
       coalesce(extract(epoch FROM l.columnstore_after), 0)::bigint AS columnstore_after_seconds,
       coalesce(extract(epoch FROM l.drop_after), 0)::bigint AS drop_after_seconds
FROM readings_layout() l;
