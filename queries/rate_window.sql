-- The file is named in the singular: Go would build rate_windows.sql.go on Windows alone.

-- RateWindowHits counts requests, each of the key at its place, or denies them
-- (decision 25). They are counted in that order, and the keys ascend by their
-- bytes: every replica locks them in one order.
-- name: RateWindowHits :many
SELECT h.allowed::boolean AS allowed, h.remaining::integer AS remaining, h.reset_seconds::double precision AS reset_seconds
FROM unnest(@key_ids::text[]) WITH ORDINALITY k (id, place)
CROSS JOIN LATERAL rate_window_hit(k.id) h
ORDER BY k.place;
