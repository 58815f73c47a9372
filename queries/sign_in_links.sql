-- name: SignInLinkInsert :exec
INSERT INTO sign_in_links (token_sha256, user_id, team_id, role, made_by, purpose, expires_at)
VALUES (@token_sha256, @user_id, sqlc.narg(team_id), sqlc.narg(role), sqlc.narg(made_by), @purpose, @expires_at);

-- SignInLinkGet returns a link that can be used, with the person and the team that it is for.
-- name: SignInLinkGet :one
SELECT l.purpose, l.role, l.expires_at, t.id AS team_id, t.name AS team_name,
       u.id AS user_id, u.email, u.display_name, (u.password_hash IS NOT NULL)::boolean AS has_password
FROM open_links l JOIN users u ON u.id = l.user_id LEFT JOIN teams t ON t.id = l.team_id
WHERE l.token_sha256 = @token_sha256;

-- SignInLinkUse marks a link as used. It returns nothing if the link cannot be used.
-- name: SignInLinkUse :one
UPDATE sign_in_links SET used_at = now()
WHERE sign_in_links.token_sha256 = @token_sha256 AND EXISTS (SELECT FROM open_links l WHERE l.token_sha256 = @token_sha256)
RETURNING user_id, team_id, role, purpose;

-- SignInLinkDelete deletes the unused links of a person with a purpose and of a team; null matches all.
-- name: SignInLinkDelete :execrows
DELETE FROM sign_in_links
WHERE user_id = @user_id AND used_at IS NULL
  AND (sqlc.narg(purpose)::text IS NULL OR purpose = sqlc.narg(purpose))
  AND (sqlc.narg(team_id)::uuid IS NULL OR team_id = sqlc.narg(team_id));

-- SignInLinkListByTeam lists the links of a team that can be used, with the address of the admin who made each.
-- name: SignInLinkListByTeam :many
SELECT u.id, u.email, l.purpose, l.role, maker.email AS made_by, l.expires_at
FROM open_links l JOIN users u ON u.id = l.user_id LEFT JOIN users maker ON maker.id = l.made_by
WHERE l.team_id = @team_id ORDER BY lower(u.email), l.purpose;

-- SignInLinkPurge deletes links a month after their end.
-- name: SignInLinkPurge :execrows
DELETE FROM sign_in_links WHERE expires_at < now() - INTERVAL '30 days';
