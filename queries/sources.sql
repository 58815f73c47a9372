-- name: SourceInsert :one
INSERT INTO sources (team_id, name, format, mapping)
VALUES (@team_id, @name, @format, nullif(@mapping::text, ''))
RETURNING *;

-- name: SourceCount :one
SELECT count(*) FROM sources WHERE team_id = @team_id;

-- SourceList lists the sources of a team by name, with their last message and what became of the messages of the last 24
-- hours.
-- name: SourceList :many
SELECT sqlc.embed(s), st.last_received_at, h.messages, h.stored, h.rejected, h.ignored
FROM sources s
LEFT JOIN source_state st ON st.source_id = s.id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(messages), 0)::bigint AS messages, coalesce(sum(stored), 0)::bigint AS stored,
           coalesce(sum(rejected), 0)::bigint AS rejected, coalesce(sum(ignored), 0)::bigint AS ignored
    FROM source_hours WHERE source_id = s.id AND hour > now() - INTERVAL '24 hours') h
WHERE s.team_id = @team_id
ORDER BY s.name COLLATE natural_order, s.name;

-- name: SourceGet :one
SELECT * FROM sources WHERE team_id = @team_id AND id = @source_id;

-- SourceMessageGet returns the newest message of a source.
-- name: SourceMessageGet :one
SELECT st.last_received_at, st.message, st.precision FROM source_state st
JOIN sources s ON s.id = st.source_id
WHERE s.team_id = @team_id AND s.id = @source_id;

-- SourceUpdate changes what is not null. A mapping of '' removes the mapping.
-- name: SourceUpdate :one
UPDATE sources
SET name = coalesce(sqlc.narg(name), name), format = coalesce(sqlc.narg(format), format),
    mapping = nullif(coalesce(sqlc.narg(mapping), mapping), ''),
    disabled_at = CASE sqlc.narg(disabled)::boolean WHEN true THEN coalesce(disabled_at, now()) WHEN false THEN NULL
        ELSE disabled_at END
WHERE team_id = @team_id AND id = @source_id
RETURNING *;

-- name: SourceDelete :execrows
DELETE FROM sources WHERE team_id = @team_id AND id = @source_id;

-- The queries below serve workers and receivers, and the operator's commands, which work on all teams.

-- SourceListByID returns those of some sources that exist.
-- name: SourceListByID :many
SELECT * FROM sources WHERE id = ANY (@source_ids::uuid[]);

-- SourceStateUpsert stores the newest messages of some sources. The nil of a message is the empty string. It passes over
-- sources that were deleted. The sources must be distinct; they are locked in the order of their ids.
-- name: SourceStateUpsert :exec
INSERT INTO source_state AS st (source_id, last_received_at, message, precision)
SELECT s.id, n.received_at, nullif(n.message, ''), n.precision
FROM (SELECT unnest(@source_ids::uuid[]) AS id, unnest(@received_at::timestamptz[]) AS received_at,
             unnest(@messages::bytea[]) AS message, unnest(@precisions::text[]) AS precision) n
JOIN sources s ON s.id = n.id
ORDER BY s.id
ON CONFLICT (source_id) DO UPDATE
SET last_received_at = excluded.last_received_at, message = excluded.message, precision = excluded.precision
WHERE st.last_received_at <= excluded.last_received_at;

-- SourceHourAdd adds counts to the current hour of some sources, as SourceStateUpsert does.
-- name: SourceHourAdd :exec
INSERT INTO source_hours AS h (source_id, hour, messages, stored, rejected, ignored)
SELECT s.id, date_trunc('hour', now()), n.messages, n.stored, n.rejected, n.ignored
FROM (SELECT unnest(@source_ids::uuid[]) AS id, unnest(@messages::bigint[]) AS messages, unnest(@stored::bigint[]) AS stored,
             unnest(@rejected::bigint[]) AS rejected, unnest(@ignored::bigint[]) AS ignored) n
JOIN sources s ON s.id = n.id
ORDER BY s.id
ON CONFLICT (source_id, hour) DO UPDATE
SET messages = h.messages + excluded.messages, stored = h.stored + excluded.stored,
    rejected = h.rejected + excluded.rejected, ignored = h.ignored + excluded.ignored;

-- SourceHourPurge deletes the counts of some sources that are older than two days.
-- name: SourceHourPurge :exec
DELETE FROM source_hours WHERE source_id = ANY (@source_ids::uuid[]) AND hour < now() - INTERVAL '48 hours';

-- AliasUnitList finds the units with some aliases, by team and key.
-- name: AliasUnitList :many
SELECT a.team_id, a.alias_key, a.hardware_id
FROM (SELECT unnest(@team_ids::uuid[]) AS team_id, unnest(@alias_keys::text[]) AS alias_key) n
JOIN unit_aliases a ON a.team_id = n.team_id AND a.alias_key = n.alias_key;

-- AliasInsert inserts the alias of a unit.
-- name: AliasInsert :exec
INSERT INTO unit_aliases (team_id, alias_key, alias, hardware_id) VALUES (@team_id, @alias_key, @alias, @hardware_id);

-- AliasList lists the aliases of some units of a team.
-- name: AliasList :many
SELECT hardware_id, alias FROM unit_aliases WHERE team_id = @team_id AND hardware_id = ANY (@hardware_ids::text[]);

-- AliasDeleteUnused deletes the aliases of units that were only in one device of their team.
-- name: AliasDeleteUnused :exec
DELETE FROM unit_aliases a USING devices own
WHERE own.id = @device_id AND a.team_id = own.team_id
  AND a.hardware_id IN (SELECT h.hardware_id FROM device_hardware h WHERE h.device_id = own.id)
  AND NOT EXISTS (SELECT FROM device_hardware h JOIN devices d ON d.id = h.device_id
                  WHERE h.hardware_id = a.hardware_id AND d.team_id = a.team_id AND h.device_id <> own.id);

-- SourceDeviceList returns the names of some devices of a team.
-- name: SourceDeviceList :many
SELECT id, coalesce(display_name, '')::text AS name FROM devices WHERE team_id = @team_id AND id = ANY (@device_ids::uuid[]);
