-- SharedLinkInsert stores a link for something that belongs to the team.
-- name: SharedLinkInsert :execrows
INSERT INTO shared_links (token_sha256, team_id, made_by, night, assignment_id, device_ids, expires_at)
SELECT @token_sha256, t.id, @made_by, sqlc.narg(night), sqlc.narg(assignment_id), sqlc.narg(device_ids)::uuid[], @expires_at
FROM teams t
WHERE t.id = @team_id
  AND (sqlc.narg(assignment_id)::uuid IS NULL OR EXISTS (
      SELECT FROM assignments a JOIN devices d ON d.id = a.device_id
      WHERE a.id = sqlc.narg(assignment_id) AND a.type = 'athlete' AND d.team_id = t.id))
  AND (sqlc.narg(device_ids)::uuid[] IS NULL OR cardinality(sqlc.narg(device_ids)) = (
      SELECT count(*) FROM devices d WHERE d.team_id = t.id AND d.id = ANY(sqlc.narg(device_ids))));

-- SharedLinkGet returns a link that can be used, with its team.
-- name: SharedLinkGet :one
SELECT s.night, s.assignment_id, s.device_ids, s.expires_at, sqlc.embed(t)
FROM open_shares s JOIN teams t ON t.id = s.team_id WHERE s.token_sha256 = @token_sha256;

-- SharedLinkList lists the links of a team that can be used, the newest first, with the person of each.
-- name: SharedLinkList :many
SELECT s.id, s.night, s.assignment_id, s.device_ids, s.expires_at, s.maker, a.label
FROM open_shares s LEFT JOIN assignments a ON a.id = s.assignment_id
WHERE s.team_id = @team_id ORDER BY s.created_at DESC, s.id;

-- name: SharedLinkCount :one
SELECT count(*) FROM open_shares WHERE team_id = @team_id;

-- name: SharedLinkDelete :execrows
DELETE FROM shared_links WHERE team_id = @team_id AND id = @share_id;

-- name: SharedLinkPurge :execrows
DELETE FROM shared_links WHERE expires_at < now();
