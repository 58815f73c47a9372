-- The queries below serve the archive, an operator's command. They read one team.

-- ReadingGetFirstOfTeam returns the first bucket of a team before a time; that time, if there is none.
-- name: ReadingGetFirstOfTeam :one
SELECT coalesce(min(r.bucket_at), @window_to)::timestamptz AS first_at
FROM devices d
CROSS JOIN LATERAL (
    SELECT readings.bucket_at FROM readings
    WHERE readings.device_id = d.id AND readings.bucket_at < @window_to::timestamptz
    ORDER BY readings.bucket_at LIMIT 1
) r
WHERE d.team_id = @team_id;

-- ReadingSummarize counts the readings of a team in a window and their devices, and returns when the newest of them was
-- stored.
-- name: ReadingSummarize :one
SELECT count(*) AS readings, count(DISTINCT r.device_id) AS devices,
       coalesce(max(r.ingested_at), 'epoch')::timestamptz AS newest_ingested_at
FROM devices d
JOIN readings r ON r.device_id = d.id
WHERE d.team_id = @team_id AND r.bucket_at >= @window_from::timestamptz AND r.bucket_at < @window_to::timestamptz;

-- ReadingArchive reads the readings of a team in a window in the order of an export, each with the unit that measured
-- it. The store runs its text, so that no rows are generated.
-- name: ReadingArchive :exec
SELECT r.bucket_at, r.device_id, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at,
       coalesce(r.measured_at, r.bucket_at)::timestamptz AS measured_at, h.hardware_id
FROM devices d
JOIN readings r ON r.device_id = d.id
LEFT JOIN device_hardware h ON h.device_id = r.device_id
    AND tstzrange(h.installed_at, h.removed_at) @> coalesce(r.measured_at, r.bucket_at)
WHERE d.team_id = @team_id AND r.bucket_at >= @window_from::timestamptz AND r.bucket_at < @window_to::timestamptz
ORDER BY r.bucket_at, r.device_id;
