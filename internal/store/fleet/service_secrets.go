package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"roomsensor/db"
	"roomsensor/internal/store/pg"
)

// cursorSecretName is the name of the secret of page cursors, in service_secrets and in receiver_secrets.
const cursorSecretName = "cursor"

// secret returns the 32-byte secret of page cursors of one table, which is the same on all replicas: the first process
// that asks for it creates it. what names it in errors.
func (s *Store) secret(
	ctx context.Context, what string, ensure func(context.Context, db.DBTX, db.SecretEnsureParams) error,
	get func(ctx context.Context, tx db.DBTX, name string) ([]byte, error),
) ([]byte, error) {
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // It never returns an error: it aborts the process instead.
	if err := ensure(ctx, s.Pool, db.SecretEnsureParams{Name: cursorSecretName, Secret: fresh}); err != nil {
		return nil, fmt.Errorf("creating %s: %w", what, pg.Translate(err))
	}
	secret, err := get(ctx, s.Pool, cursorSecretName)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, pg.Translate(err))
	}
	return secret, nil
}

// CursorSecret returns the secret that encrypts the page cursors of the API.
func (s *Store) CursorSecret(ctx context.Context) ([]byte, error) {
	return s.secret(ctx, "the cursor secret", s.Queries.SecretEnsure, s.Queries.SecretGet)
}

// ReceiverCursorSecret returns the secret that encrypts the page cursors of receivers.
func (s *Store) ReceiverCursorSecret(ctx context.Context) ([]byte, error) {
	ensure := func(ctx context.Context, tx db.DBTX, p db.SecretEnsureParams) error {
		return s.Queries.ReceiverSecretEnsure(ctx, tx, db.ReceiverSecretEnsureParams(p))
	}
	return s.secret(ctx, "the cursor secret of receivers", ensure, s.Queries.ReceiverSecretGet)
}
