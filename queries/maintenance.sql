-- ChunkToOrderList lists the chunks that stopped changing and are not in the
-- order of their key.
-- name: ChunkToOrderList :many
SELECT c.chunk::text AS chunk, c.range_start::timestamptz AS range_start, c.range_end::timestamptz AS range_end,
       c.bytes::bigint AS bytes
FROM chunks_to_order(@ended_before::timestamptz) c;

-- ChunkOrder puts a chunk in the order of its key; false says that another
-- process is at it.
-- name: ChunkOrder :one
SELECT order_chunk(@chunk::text)::boolean AS ordered;
