-- name: MembershipGet :one
SELECT m.role, sqlc.embed(t) FROM memberships m JOIN teams t ON t.id = m.team_id
WHERE m.team_id = @team_id AND m.user_id = @user_id;

-- MembershipRole returns the role of a person who may sign in.
-- name: MembershipRole :one
SELECT m.role FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.team_id = @team_id AND m.user_id = @user_id AND u.disabled_at IS NULL;

-- MembershipListByUser lists the teams of a person by name.
-- name: MembershipListByUser :many
SELECT m.role, sqlc.embed(t) FROM memberships m JOIN teams t ON t.id = m.team_id
WHERE m.user_id = @user_id ORDER BY t.name, t.id;

-- MembershipList lists the members of a team. others is the number of other teams of the person.
-- name: MembershipList :many
SELECT m.role, m.created_at, u.id, u.email, u.display_name, u.disabled_at,
       (SELECT count(*) FROM memberships o WHERE o.user_id = m.user_id AND o.team_id <> m.team_id) AS others
FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.team_id = @team_id ORDER BY lower(u.email);

-- MembershipCount counts the members of a team and its open invitations.
-- name: MembershipCount :one
SELECT ((SELECT count(*) FROM memberships m WHERE m.team_id = teams.id)
    + (SELECT count(*) FROM open_links l WHERE l.team_id = teams.id AND l.purpose = 'invitation'))::bigint
FROM teams WHERE id = @team_id;

-- MembershipLockAdmins locks the admins of a team until the transaction ends.
-- name: MembershipLockAdmins :many
SELECT m.user_id FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.team_id = @team_id AND m.role = 'admin' AND u.disabled_at IS NULL ORDER BY m.user_id FOR UPDATE OF m;

-- MembershipInsert makes a person a member of a team, unless that is already the case.
-- name: MembershipInsert :exec
INSERT INTO memberships (user_id, team_id, role) VALUES (@user_id, @team_id, @role) ON CONFLICT DO NOTHING;

-- name: MembershipSetRole :execrows
UPDATE memberships SET role = @role WHERE team_id = @team_id AND user_id = @user_id;

-- name: MembershipDelete :execrows
DELETE FROM memberships WHERE team_id = @team_id AND user_id = @user_id;
