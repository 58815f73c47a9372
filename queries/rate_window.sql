-- The file is named in the singular: Go would build rate_windows.sql.go on Windows alone.

-- RateWindowHit counts one request of a key, or denies it (decision 25).
-- name: RateWindowHit :one
SELECT h.allowed::boolean AS allowed, h.remaining::integer AS remaining, h.reset_seconds::double precision AS reset_seconds
FROM rate_window_hit(@key_id) h;
