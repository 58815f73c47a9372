-- SignInAttemptCount counts an attempt for each key, within 15 minutes of the first one, and returns the counts and when
-- they begin again. They also begin again if the first one is in the future, because the clock stepped back. The order of
-- the keys prevents deadlocks.
-- name: SignInAttemptCount :many
INSERT INTO sign_in_attempts AS a (key_sha256, attempts, began_at)
SELECT key, 1, now() FROM unnest(@keys::bytea[]) AS key ORDER BY key
ON CONFLICT (key_sha256) DO UPDATE SET
    attempts = CASE WHEN a.began_at BETWEEN now() - INTERVAL '15 minutes' AND now() THEN a.attempts + 1 ELSE 1 END,
    began_at = CASE WHEN a.began_at BETWEEN now() - INTERVAL '15 minutes' AND now() THEN a.began_at ELSE now() END
RETURNING key_sha256, attempts,
    extract(epoch FROM began_at + INTERVAL '15 minutes' - now())::double precision AS reset_seconds;

-- name: SignInAttemptDelete :exec
DELETE FROM sign_in_attempts WHERE key_sha256 = ANY (@keys::bytea[]);

-- name: SignInAttemptPurge :execrows
DELETE FROM sign_in_attempts WHERE NOT began_at BETWEEN now() - INTERVAL '15 minutes' AND now();

-- SignInAddressExists reports whether a person signed in from an address within 30 days.
-- name: SignInAddressExists :one
SELECT EXISTS (
    SELECT FROM sign_in_addresses a JOIN users u ON u.id = a.user_id
    WHERE lower(u.email) = lower(@email) AND a.address_sha256 = @address_sha256
        AND a.signed_in_at > now() - INTERVAL '30 days');

-- name: SignInAddressPut :exec
INSERT INTO sign_in_addresses (user_id, address_sha256, signed_in_at) VALUES (@user_id, @address_sha256, now())
ON CONFLICT (user_id, address_sha256) DO UPDATE SET signed_in_at = excluded.signed_in_at;

-- SignInAddressTrim keeps the newest 20 addresses of a person.
-- name: SignInAddressTrim :exec
DELETE FROM sign_in_addresses a WHERE a.user_id = @user_id AND a.address_sha256 NOT IN (
    SELECT k.address_sha256 FROM sign_in_addresses k WHERE k.user_id = @user_id ORDER BY k.signed_in_at DESC LIMIT 20);

-- name: SignInAddressPurge :execrows
DELETE FROM sign_in_addresses WHERE signed_in_at < now() - INTERVAL '30 days';
