-- The file name is singular because Go would build rate_windows.sql.go on Windows only.

-- RateWindowHit counts or denies one request per element of key_ids and returns their verdicts in that order (decision
-- 25). The keys must ascend by their bytes, so that all replicas lock them in one order.
-- name: RateWindowHit :many
SELECT h.allowed::boolean AS allowed, h.remaining::integer AS remaining, h.reset_seconds::double precision AS reset_seconds
FROM unnest(@key_ids::text[]) WITH ORDINALITY k (id, place)
CROSS JOIN LATERAL rate_window_hit(k.id) h
ORDER BY k.place;
