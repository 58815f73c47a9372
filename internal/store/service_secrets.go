package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"roomsensor/db"
)

// cursorSecretName is the name of the secret of page cursors, in service_secrets and in receiver_secrets.
const cursorSecretName = "cursor"

func newSecret() []byte {
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // It never returns an error: it aborts the process instead.
	return fresh
}

// CursorSecret returns the 32-byte secret that encrypts page cursors. It is the same on all replicas; the first process
// that asks for it creates it.
func (s *Store) CursorSecret(ctx context.Context) ([]byte, error) {
	err := s.queries.SecretEnsure(ctx, s.pool, db.SecretEnsureParams{Name: cursorSecretName, Secret: newSecret()})
	if err != nil {
		return nil, fmt.Errorf("creating the cursor secret: %w", translate(err))
	}
	secret, err := s.queries.SecretGet(ctx, s.pool, cursorSecretName)
	if err != nil {
		return nil, fmt.Errorf("reading the cursor secret: %w", translate(err))
	}
	return secret, nil
}

// ReceiverCursorSecret is CursorSecret for the page cursors of receivers.
func (s *Store) ReceiverCursorSecret(ctx context.Context) ([]byte, error) {
	err := s.queries.ReceiverSecretEnsure(ctx, s.pool, db.ReceiverSecretEnsureParams{
		Name: cursorSecretName, Secret: newSecret(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the cursor secret of receivers: %w", translate(err))
	}
	secret, err := s.queries.ReceiverSecretGet(ctx, s.pool, cursorSecretName)
	if err != nil {
		return nil, fmt.Errorf("reading the cursor secret of receivers: %w", translate(err))
	}
	return secret, nil
}
