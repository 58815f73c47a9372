-- name: UserGet :one
SELECT id, email, display_name, created_at, disabled_at, signed_out_at, (password_hash IS NOT NULL)::boolean AS has_password,
       fahrenheit, hour12, month_first
FROM users WHERE id = @user_id;

-- name: UserGetByEmail :one
SELECT id, email, display_name, created_at, disabled_at, signed_out_at, (password_hash IS NOT NULL)::boolean AS has_password,
       fahrenheit, hour12, month_first
FROM users WHERE lower(email) = lower(@email);

-- UserGetCredentials returns what is needed to check the password of a person who may sign in.
-- name: UserGetCredentials :one
SELECT id, email, display_name, created_at, signed_out_at, password_hash
FROM users WHERE lower(email) = lower(@email) AND disabled_at IS NULL AND password_hash IS NOT NULL;

-- UserInsert adds a person, unless there is one with the email address.
-- name: UserInsert :exec
INSERT INTO users (email) VALUES (@email) ON CONFLICT (lower(email)) DO NOTHING;

-- UserSetPassword sets the password of a person and ends all sessions.
-- name: UserSetPassword :one
UPDATE users SET password_hash = @password_hash, signed_out_at = clock_timestamp()
WHERE id = @user_id AND disabled_at IS NULL
RETURNING id, email, display_name, created_at, disabled_at, signed_out_at, true::boolean AS has_password,
    fahrenheit, hour12, month_first;

-- UserSetFirstPassword sets the password of a person who has none.
-- name: UserSetFirstPassword :execrows
UPDATE users SET password_hash = @password_hash, display_name = @display_name
WHERE id = @user_id AND password_hash IS NULL AND disabled_at IS NULL;

-- name: UserSetName :exec
UPDATE users SET display_name = @display_name WHERE id = @user_id;

-- UserSetFormat sets how a person reads temperatures, times of day and dates.
-- name: UserSetFormat :exec
UPDATE users SET fahrenheit = @fahrenheit, hour12 = @hour12, month_first = @month_first WHERE id = @user_id;

-- UserSignOut ends all sessions of a person.
-- name: UserSignOut :exec
UPDATE users SET signed_out_at = clock_timestamp() WHERE id = @user_id;

-- name: UserDisable :exec
UPDATE users SET disabled_at = coalesce(disabled_at, now()), signed_out_at = clock_timestamp() WHERE id = @user_id;

-- name: UserEnable :exec
UPDATE users SET disabled_at = NULL WHERE id = @user_id;

-- UserList returns one row per person and team; team_id is null for a person without a team.
-- name: UserList :many
SELECT u.id, u.email, u.display_name, u.created_at, u.disabled_at, (u.password_hash IS NOT NULL)::boolean AS has_password,
       t.id AS team_id, t.name AS team_name, m.role
FROM users u LEFT JOIN memberships m ON m.user_id = u.id LEFT JOIN teams t ON t.id = m.team_id
ORDER BY u.created_at, u.id, t.name, t.id;

-- UserDelete deletes a person with memberships, links and addresses.
-- name: UserDelete :execrows
DELETE FROM users WHERE id = @user_id;

-- UserAuditErase replaces the address of a person in the audit log. object_id is the id of the person.
-- name: UserAuditErase :execrows
UPDATE audit_log SET
    actor = CASE WHEN user_id = @user_id::uuid THEN @name::text ELSE actor END,
    object_name = CASE WHEN object_id = @object_id::text THEN @name::text ELSE object_name END,
    before = CASE WHEN object_id = @object_id::text THEN before - 'email' - 'display_name' ELSE before END,
    after = CASE WHEN object_id = @object_id::text THEN after - 'email' - 'display_name' ELSE after END
WHERE user_id = @user_id::uuid
   OR object_kind IN ('user', 'membership', 'sign_in_link') AND object_id = @object_id::text;
