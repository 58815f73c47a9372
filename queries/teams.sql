-- name: TeamInsert :one
INSERT INTO teams (name) VALUES (@name) RETURNING id, name;

-- name: TeamGet :one
SELECT id, name FROM teams WHERE id = @team_id;

-- name: TeamList :many
SELECT id, name FROM teams ORDER BY created_at, id;
