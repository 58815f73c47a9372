-- TimelineDeviceList reads a page of a team's devices by name. search is a part of the name, of the hardware id or of the
-- label of an assignment that overlaps the window, ignoring case; empty matches all. total counts the devices of all
-- pages. A retired device is there as long as it has an assignment in the window.
-- name: TimelineDeviceList :many
SELECT d.id, d.hardware_id, d.display_name, count(*) OVER () AS total
FROM devices d
WHERE d.team_id = @team_id AND d.metadata @> @metadata::jsonb
  AND (d.retired_at IS NULL OR EXISTS (
      SELECT FROM assignments a WHERE a.device_id = d.id
        AND tstzrange(a.started_at, a.ended_at) && tstzrange(@window_from::timestamptz, @window_to::timestamptz)))
  AND (@search::text = '' OR strpos(lower(d.display_name), lower(@search)) > 0
       OR strpos(lower(d.hardware_id), lower(@search)) > 0
       OR EXISTS (SELECT FROM assignments a
                  WHERE a.device_id = d.id AND strpos(lower(a.label), lower(@search)) > 0
                    AND tstzrange(a.started_at, a.ended_at) && tstzrange(@window_from::timestamptz, @window_to::timestamptz)))
ORDER BY coalesce(d.display_name, d.hardware_id) COLLATE natural_order, d.id
LIMIT @most::bigint OFFSET @skip::bigint;

-- TimelineAssignmentList lists the assignments of some devices of the team that overlap a window or are open, at most
-- @most of each device, the newest first.
-- name: TimelineAssignmentList :many
SELECT a.* FROM devices d
CROSS JOIN LATERAL (
    SELECT * FROM assignments x
    WHERE x.device_id = d.id
      AND (x.ended_at IS NULL
           OR tstzrange(x.started_at, x.ended_at) && tstzrange(@window_from::timestamptz, @window_to::timestamptz))
    ORDER BY x.started_at DESC LIMIT @most::bigint
) a
WHERE d.team_id = @team_id AND d.id = ANY(@device_ids::uuid[])
ORDER BY a.device_id, a.started_at DESC;
