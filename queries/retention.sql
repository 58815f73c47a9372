-- RetentionBegin begins a pass that deletes expired readings, unless one began within the last hour.
-- name: RetentionBegin :execrows
UPDATE retention_state SET began_at = now() WHERE began_at <= now() - INTERVAL '1 hour';

-- ExpiredDeviceList lists devices that have expired readings, with the first of them: one of each team, then a second one
-- of each, and so on. A reading before the year 1, which only SQL can have inserted, stays: Go would take it for a later
-- one.
-- name: ExpiredDeviceList :many
SELECT e.team_id, e.device_id, r.bucket_at AS first_at
FROM expiring_devices e
CROSS JOIN LATERAL (
    SELECT readings.bucket_at FROM readings
    WHERE readings.device_id = e.device_id AND readings.bucket_at < e.expired_before
      AND readings.bucket_at >= '0001-01-01 00:00:00Z'
    ORDER BY readings.bucket_at LIMIT 1
) r
ORDER BY row_number() OVER (PARTITION BY e.team_id ORDER BY r.bucket_at, e.device_id), e.team_id
LIMIT @most::bigint;

-- ReadingExpire deletes the expired readings of a device, from a time on and for 35 days at most, with their samples.
-- name: ReadingExpire :one
SELECT x.deleted_readings::bigint AS readings, x.deleted_samples::bigint AS samples
FROM expire_readings(@device_id::uuid, @since::timestamptz) x;
