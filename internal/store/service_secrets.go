package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"roomsensor/db"
)

const cursorSecretName = "cursor"

// CursorSecret returns the 32-byte secret that encrypts page cursors. It is the same on all replicas; the first process
// that asks for it creates it.
func (s *Store) CursorSecret(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // It never returns an error: it aborts the process instead.
	err := s.queries.SecretEnsure(ctx, s.pool, db.SecretEnsureParams{Name: cursorSecretName, Secret: fresh})
	if err != nil {
		return nil, fmt.Errorf("creating the cursor secret: %w", translate(err))
	}
	secret, err := s.queries.SecretGet(ctx, s.pool, cursorSecretName)
	if err != nil {
		return nil, fmt.Errorf("reading the cursor secret: %w", translate(err))
	}
	return secret, nil
}
