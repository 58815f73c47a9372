-- AlertRoundInsert adds the rounds of teams that have none.
-- name: AlertRoundInsert :exec
INSERT INTO alert_rounds (team_id) SELECT t.id FROM teams t
WHERE NOT EXISTS (SELECT FROM alert_rounds r WHERE r.team_id = t.id) ON CONFLICT DO NOTHING;

-- AlertRoundTake locks the round of the team that was tried least recently, if that was before a time, and that no other
-- process works on.
-- name: AlertRoundTake :one
SELECT * FROM alert_rounds WHERE attempted_at < @due ORDER BY attempted_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: AlertRoundUpdate :exec
UPDATE alert_rounds
SET attempted_at = @evaluated_at, evaluated_at = @evaluated_at, nights_at = @nights_at, reported_at = @reported_at, report = @report, reported = @reported,
    sends_mails = @sends_mails
WHERE team_id = @team_id;

-- AlertRoundFail moves a team whose evaluation failed behind the others.
-- name: AlertRoundFail :exec
UPDATE alert_rounds SET attempted_at = @attempted_at WHERE team_id = @team_id;

-- AlertRoundGetNewest returns when a team was tried last, and how many teams were tried after their last evaluation was
-- too old.
-- name: AlertRoundGetNewest :one
SELECT coalesce(max(attempted_at), 'epoch')::timestamptz AS attempted_at,
       count(*) FILTER (WHERE attempted_at > evaluated_at + make_interval(secs => @late_seconds::double precision)) AS failing
FROM alert_rounds;

-- AlertReportGet returns the newest morning report of a team.
-- name: AlertReportGet :one
SELECT evaluated_at, report, sends_mails FROM alert_rounds WHERE team_id = @team_id;

-- AlertDeviceList lists the devices of a team that are not retired, with their newest readings.
-- name: AlertDeviceList :many
SELECT d.id, d.metadata, s.last_seen_at, s.bucket_at, s.co2_ppm, s.temp_c, s.humidity_pct, s.lux, s.spl_db
FROM devices d JOIN device_state s ON s.device_id = d.id
WHERE d.team_id = @team_id AND d.retired_at IS NULL
ORDER BY d.id;

-- AlertRejectList lists the units of a team with rejects that arrived since a time and were not replayed, with the reason
-- of the newest one. Those come first that have been rejected for longest: many new units must not hide them.
-- name: AlertRejectList :many
SELECT coalesce(unit, '')::text AS unit, min(received_at)::timestamptz AS first_at,
       max(received_at)::timestamptz AS last_at, ((array_agg(reason ORDER BY received_at DESC))[1])::text AS reason
FROM rejected_uploads
WHERE team_id = @team_id::uuid AND reject_team(team_id) = @team_id
  AND received_at AT TIME ZONE 'UTC' >= timezone('UTC', @since::timestamptz) AND replayed_at IS NULL
GROUP BY unit
ORDER BY first_at, unit
LIMIT @most::bigint;

-- AlertList lists the alerts of a team that are open or ended after a time, with their devices and who has the rooms: the
-- open ones first, then the newest.
-- name: AlertList :many
SELECT sqlc.embed(a), coalesce(d.display_name, d.hardware_id, a.subject)::text AS name,
       coalesce(s.label, '')::text AS label
FROM alerts a
LEFT JOIN devices d ON d.id = a.device_id
LEFT JOIN LATERAL (SELECT label FROM assignments WHERE assignments.device_id = a.device_id AND ended_at IS NULL LIMIT 1) s ON true
WHERE a.team_id = @team_id AND (a.ended_at IS NULL OR a.ended_at > @since::timestamptz)
ORDER BY a.ended_at DESC NULLS FIRST, a.noted_at DESC, a.id
LIMIT @most::bigint;

-- name: AlertInsert :exec
INSERT INTO alerts (team_id, rule, subject, device_id, detail, since, noted_at)
VALUES (@team_id, @rule, @subject, @device_id, @detail, @since, @noted_at);

-- AlertRenew changes what an open alert says.
-- name: AlertRenew :exec
UPDATE alerts SET detail = @detail, since = @since WHERE team_id = @team_id AND id = @alert_id;

-- name: AlertEnd :exec
UPDATE alerts SET ended_at = @ended_at, outcome = @outcome WHERE team_id = @team_id AND id = @alert_id;

-- AlertTrim deletes the alerts of a team that ended before its newest ones: a team whose rooms change often must not fill the
-- table.
-- name: AlertTrim :exec
DELETE FROM alerts WHERE alerts.team_id = @team_id AND alerts.id IN (
    SELECT a.id FROM alerts a WHERE a.team_id = @team_id AND a.ended_at IS NOT NULL
    ORDER BY a.ended_at DESC OFFSET @kept::bigint);

-- AlertPurge deletes alerts that ended before a time.
-- name: AlertPurge :execrows
DELETE FROM alerts WHERE id IN (SELECT a.id FROM alerts a WHERE a.ended_at < @before LIMIT @most::bigint);
