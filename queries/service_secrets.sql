-- SecretEnsure inserts a secret, or keeps the one that exists.
-- name: SecretEnsure :exec
INSERT INTO service_secrets (name, secret) VALUES (@name, @secret) ON CONFLICT DO NOTHING;

-- name: SecretGet :one
SELECT secret FROM service_secrets WHERE name = @name;
