-- name: SignInLinkInsert :exec
INSERT INTO sign_in_links (token_sha256, user_id, team_id, role, purpose, expires_at)
VALUES (@token_sha256, @user_id, sqlc.narg(team_id), sqlc.narg(role), @purpose, @expires_at);

-- SignInLinkGet returns a link that can be used, with the person and the team that it is for.
-- name: SignInLinkGet :one
SELECT l.purpose, l.role, l.expires_at, t.id AS team_id, t.name AS team_name,
       u.id AS user_id, u.email, u.display_name, (u.password_hash IS NOT NULL)::boolean AS has_password
FROM sign_in_links l JOIN users u ON u.id = l.user_id LEFT JOIN teams t ON t.id = l.team_id
WHERE l.token_sha256 = @token_sha256 AND l.used_at IS NULL AND l.expires_at > now() AND u.disabled_at IS NULL;

-- SignInLinkUse marks a link as used. It returns nothing if it was used before or has expired.
-- name: SignInLinkUse :one
UPDATE sign_in_links SET used_at = now()
WHERE token_sha256 = @token_sha256 AND used_at IS NULL AND expires_at > now()
RETURNING user_id, team_id, role, purpose;

-- SignInLinkDeleteByUser deletes the unused links of a person with a purpose; null matches all.
-- name: SignInLinkDeleteByUser :exec
DELETE FROM sign_in_links
WHERE user_id = @user_id AND (sqlc.narg(purpose)::text IS NULL OR purpose = sqlc.narg(purpose)) AND used_at IS NULL;

-- SignInLinkDeleteByTeam deletes the unused invitation of a person to a team.
-- name: SignInLinkDeleteByTeam :execrows
DELETE FROM sign_in_links WHERE team_id = @team_id AND user_id = @user_id AND used_at IS NULL;

-- SignInLinkListByTeam lists the open invitations of a team.
-- name: SignInLinkListByTeam :many
SELECT u.id, u.email, l.role, l.created_at, l.expires_at
FROM sign_in_links l JOIN users u ON u.id = l.user_id
WHERE l.team_id = @team_id AND l.used_at IS NULL AND l.expires_at > now() ORDER BY lower(u.email);

-- SignInLinkPurge deletes links a month after their end.
-- name: SignInLinkPurge :execrows
DELETE FROM sign_in_links WHERE expires_at < now() - INTERVAL '30 days';
