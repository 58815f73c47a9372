-- ChunkListUnordered lists the chunks that ended before a time and are not in primary-key order, the newest first.
-- postponed_until is set while a rewrite within the time limit is not worth an attempt, because one within the same or a
-- longer limit failed.
-- name: ChunkListUnordered :many
SELECT c.chunk::text AS chunk, c.range_start::timestamptz AS range_start, c.range_end::timestamptz AS range_end,
       c.bytes::bigint AS bytes, p.postponed_until
FROM chunks_to_order(@ended_before::timestamptz) c
LEFT JOIN postponed_chunks p ON p.chunk = c.chunk AND p.postponed_until > now()
    AND p.time_limit >= make_interval(secs => @limit_seconds::double precision)
ORDER BY c.range_end DESC;

-- ChunkOrder rewrites a chunk in primary-key order. It returns false if another process is ordering a chunk.
-- name: ChunkOrder :one
SELECT order_chunk(@chunk::text)::boolean AS ordered;

-- ChunkPostpone records that the rewrite of a chunk exceeded a time limit, and deletes the records that have expired.
-- name: ChunkPostpone :exec
WITH expired AS (DELETE FROM postponed_chunks WHERE postponed_until <= now() AND postponed_chunks.chunk <> @chunk::text)
INSERT INTO postponed_chunks (chunk, postponed_until, time_limit)
VALUES (@chunk, now() + INTERVAL '1 day', make_interval(secs => @limit_seconds::double precision))
ON CONFLICT (chunk) DO UPDATE SET postponed_until = excluded.postponed_until, time_limit = excluded.time_limit;
