-- CurrentHourList lists the stored hours of some devices of some teams that are exact, if the chunks of their readings
-- exist. After a dump was restored, writers counts from an earlier number. Therefore it is hashed with the id
-- of the table, too, which is another one then.
-- name: CurrentHourList :many
SELECT h.device_id, h.hours_from, h.hours_to, h.sums
FROM current_hours h
JOIN devices d ON d.id = h.device_id
WHERE h.device_id = ANY(@device_ids::uuid[])
  AND d.team_id = ANY(@team_ids::uuid[])
  AND d.latest_bucket_at IS NOT NULL
  AND h.merge_version = d.merge_version
  AND h.writers = hashint8extended(@writers::bigint, 'current_hours'::regclass::oid::bigint);

-- CurrentHourPut stores hours of devices of some teams, in the order of the devices, so that no two processes wait for each
-- other.
-- name: CurrentHourPut :exec
INSERT INTO current_hours (device_id, hours_from, hours_to, merge_version, writers, sums)
SELECT u.device_id, u.hours_from, u.hours_to, u.merge_version,
       hashint8extended(@writers::bigint, 'current_hours'::regclass::oid::bigint), u.sums
FROM (
    SELECT unnest(@device_ids::uuid[]) AS device_id, unnest(@hours_from::timestamptz[]) AS hours_from,
           unnest(@hours_to::timestamptz[]) AS hours_to, unnest(@merge_versions::bigint[]) AS merge_version,
           unnest(@sums::bytea[]) AS sums
) u
JOIN devices d ON d.id = u.device_id
WHERE d.team_id = ANY(@team_ids::uuid[])
ORDER BY u.device_id
ON CONFLICT (device_id) DO UPDATE
SET hours_from = excluded.hours_from, hours_to = excluded.hours_to, merge_version = excluded.merge_version,
    writers = excluded.writers, sums = excluded.sums;

-- CurrentHourPurge deletes at most some rows of which no snapshot uses an hour: those of devices whose team has not asked
-- for a day.
-- name: CurrentHourPurge :execrows
DELETE FROM current_hours WHERE device_id = ANY (ARRAY(
    SELECT device_id FROM current_hours WHERE hours_to < @hours_before::timestamptz
    LIMIT @most::bigint FOR UPDATE SKIP LOCKED));
