package ground

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/internal/roomsensor"
)

const (
	// KeyRequests is what one key may ask in ten minutes (decision 25).
	KeyRequests = 600
	keysAtOnce  = 500
)

// Keys gives out credentials of a team, made in bulk, each for as many requests as the limiter grants.
type Keys struct {
	pool *pgxpool.Pool
	team uuid.UUID

	mu    sync.Mutex
	spare []string
}

// Keys makes a source of credentials.
func (g *Ground) Keys(team uuid.UUID) *Keys { return &Keys{pool: g.Pool, team: team} }

// Lease is one credential in use; it is of one goroutine.
type Lease struct {
	keys *Keys
	text string
	left int
}

// Lease starts with no credential.
func (k *Keys) Lease() *Lease { return &Lease{keys: k} }

// Bearer is the value of the Authorization header for the next request. A key is used until its requests are spent, as
// a client would, so that the limiter works on windows of all sizes.
func (l *Lease) Bearer(ctx context.Context) (string, error) {
	if l.left == 0 {
		text, err := l.keys.take(ctx)
		if err != nil {
			return "", err
		}
		l.text, l.left = "Bearer "+text, KeyRequests
	}
	l.left--
	return l.text, nil
}

// Reserve makes keys for so many requests beforehand.
func (k *Keys) Reserve(ctx context.Context, requests int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.spare)*KeyRequests < requests {
		if err := k.make(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keys) take(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.spare) == 0 {
		if err := k.make(ctx); err != nil {
			return "", err
		}
	}
	text := k.spare[0]
	k.spare = k.spare[1:]
	return text, nil
}

func (k *Keys) make(ctx context.Context) error {
	texts := make([]string, keysAtOnce)
	_, err := k.pool.CopyFrom(ctx, pgx.Identifier{"api_keys"}, []string{"key_id", "team_id", "secret_sha256", "scope"},
		pgx.CopyFromSlice(keysAtOnce, func(i int) ([]any, error) {
			id, text, sum := roomsensor.GenerateKey(roomsensor.APIKey)
			texts[i] = text
			return []any{id, k.team, sum[:], string(roomsensor.ScopeReadWrite)}, nil
		}))
	if err != nil {
		return fmt.Errorf("making API keys: %w", err)
	}
	k.spare = append(k.spare, texts...)
	return nil
}

// IngestKey makes a credential of the receiver.
func (g *Ground) IngestKey(ctx context.Context, team uuid.UUID) (string, error) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err := g.Pool.Exec(ctx, "INSERT INTO ingest_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, $3)",
		id, team, sum[:])
	if err != nil {
		return "", fmt.Errorf("making an ingest key: %w", err)
	}
	return text, nil
}
