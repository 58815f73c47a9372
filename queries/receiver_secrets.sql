-- ReceiverSecretEnsure inserts a secret, or keeps the one that exists.
-- name: ReceiverSecretEnsure :exec
INSERT INTO receiver_secrets (name, secret) VALUES (@name, @secret) ON CONFLICT DO NOTHING;

-- name: ReceiverSecretGet :one
SELECT secret FROM receiver_secrets WHERE name = @name;
