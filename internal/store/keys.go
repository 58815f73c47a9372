package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// APIKey finds a key of the API by its public id.
func (s *Store) APIKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	row, err := s.queries.APIKeyGet(ctx, s.pool, keyID)
	if err != nil {
		return roomsensor.Key{}, fmt.Errorf("reading an API key: %w", translate(err))
	}
	return apiKey(&row), nil
}

// CountRequest counts one request of a key, or denies it, together with those
// that come at the same time (decision 25).
func (s *Store) CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	verdict, err := s.limiter.hit(ctx, keyID)
	if err != nil {
		return roomsensor.RateVerdict{}, fmt.Errorf("counting a request: %w", translate(err))
	}
	return verdict, nil
}

// Team finds a team.
func (s *Store) Team(ctx context.Context, teamID uuid.UUID) (roomsensor.Team, error) {
	row, err := s.queries.TeamGet(ctx, s.pool, teamID)
	if err != nil {
		return roomsensor.Team{}, fmt.Errorf("reading a team: %w", translate(err))
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}

// IngestKeys lists every credential of the receiver, of all teams.
func (s *Store) IngestKeys(ctx context.Context) ([]roomsensor.Key, error) {
	rows, err := s.queries.IngestKeyListAll(ctx, s.pool)
	if err != nil {
		return nil, fmt.Errorf("reading upload credentials: %w", translate(err))
	}
	return mapped(rows, ingestKey), nil
}

const cursorSecretName = "cursor"

// CursorSecret is the secret that signs cursors, the same on every replica. The
// first process that asks makes it.
func (s *Store) CursorSecret(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // It never fails: the process ends instead.
	err := s.queries.SecretEnsure(ctx, s.pool, db.SecretEnsureParams{Name: cursorSecretName, Secret: fresh})
	if err != nil {
		return nil, fmt.Errorf("making the cursor secret: %w", translate(err))
	}
	secret, err := s.queries.SecretGet(ctx, s.pool, cursorSecretName)
	if err != nil {
		return nil, fmt.Errorf("reading the cursor secret: %w", translate(err))
	}
	return secret, nil
}

func apiKey(row *db.ApiKey) roomsensor.Key {
	return roomsensor.Key{
		ID: row.KeyID, TeamID: row.TeamID, SecretSHA256: [sha256.Size]byte(row.SecretSha256),
		Scope: roomsensor.Scope(row.Scope), Label: row.Label, CreatedAt: row.CreatedAt,
		ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt,
	}
}

func ingestKey(row *db.IngestKey) roomsensor.Key {
	return roomsensor.Key{
		ID: row.KeyID, TeamID: row.TeamID, SecretSHA256: [sha256.Size]byte(row.SecretSha256),
		Label: row.Label, CreatedAt: row.CreatedAt, RevokedAt: row.RevokedAt,
	}
}

// mapped turns rows into the domain. The result is never nil, so that an empty
// list prints as one.
func mapped[Row, T any](rows []Row, convert func(*Row) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = convert(&rows[i])
	}
	return list
}
