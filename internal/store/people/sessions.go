package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/store/pg"
)

// sessionTimeout bounds the methods of Sessions that have no context.
const sessionTimeout = 5 * time.Second

// Sessions stores the sessions of the dashboard for github.com/alexedwards/scs/v2, which hashes the tokens: it is an
// scs.CtxStore.
type Sessions struct{ store *Store }

// Sessions returns the sessions in the database.
func (s *Store) Sessions() *Sessions { return &Sessions{s} }

// FindCtx returns the data of a session that has not ended.
func (s *Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	data, err = s.store.Queries.SessionGet(ctx, s.store.Pool, token)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a session: %w", pg.Translate(err))
	}
	return data, true, nil
}

// CommitCtx stores a session, unless it has ended.
func (s *Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	p := db.SessionPutParams{TokenHash: token, Data: data, ExpiresAt: expiry}
	if err := s.store.Queries.SessionPut(ctx, s.store.Pool, p); err != nil {
		return fmt.Errorf("storing a session: %w", pg.Translate(err))
	}
	return nil
}

// DeleteCtx ends a session.
func (s *Sessions) DeleteCtx(ctx context.Context, token string) error {
	if err := s.store.Queries.SessionEnd(ctx, s.store.Pool, token); err != nil {
		return fmt.Errorf("ending a session: %w", pg.Translate(err))
	}
	return nil
}

// Find is FindCtx without a context.
func (s *Sessions) Find(token string) ([]byte, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.FindCtx(ctx, token)
}

// Commit is CommitCtx without a context.
func (s *Sessions) Commit(token string, data []byte, expiry time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.CommitCtx(ctx, token, data, expiry)
}

// Delete is DeleteCtx without a context.
func (s *Sessions) Delete(token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.DeleteCtx(ctx, token)
}
