-- ChunkListUnordered lists the chunks that ended before a time and are not in primary-key order, the newest first.
-- name: ChunkListUnordered :many
SELECT c.chunk::text AS chunk, c.range_start::timestamptz AS range_start, c.range_end::timestamptz AS range_end,
       c.bytes::bigint AS bytes
FROM chunks_to_order(@ended_before::timestamptz) c;

-- ChunkOrder rewrites a chunk in primary-key order. It returns false if another process is ordering a chunk.
-- name: ChunkOrder :one
SELECT order_chunk(@chunk::text)::boolean AS ordered;
