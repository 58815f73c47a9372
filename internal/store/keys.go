package store

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// APIKeysByID returns those API keys that exist of the keys with some public ids. It does not wait for pages, because
// it has a connection of its own.
func (s *Store) APIKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error) {
	rows, err := s.queries.APIKeyGet(ctx, s.admission, keyIDs)
	if err != nil {
		return nil, fmt.Errorf("reading API keys: %w", translate(err))
	}
	return convert(rows, apiKey), nil
}

// APIKeys lists the API keys of a team, the oldest first.
func (s *Store) APIKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if _, err := s.Team(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.queries.APIKeyList(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing API keys: %w", translate(err))
	}
	return convert(rows, apiKey), nil
}

// CreateAPIKey stores an API key, without the secret, which only the caller knows.
func (s *Store) CreateAPIKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error) {
	row, err := s.queries.APIKeyInsert(ctx, s.pool, db.APIKeyInsertParams{
		KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:],
		Scope: string(key.Scope), Label: key.Label, ExpiresAt: key.ExpiresAt,
	})
	if err != nil {
		return roomsensor.Key{}, translateInsert(err, "creating an API key", key.TeamID)
	}
	return apiKey(&row), nil
}

// RevokeAPIKey revokes an API key. A second revocation changes nothing.
func (s *Store) RevokeAPIKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	row, err := s.queries.APIKeyRevoke(ctx, s.pool, keyID)
	if err != nil {
		return roomsensor.Key{}, translateByID(err, "revoking an API key", roomsensor.KindAPIKey, keyID)
	}
	return apiKey(&row), nil
}

// IngestKeys lists the ingest keys of all teams, for the receiver.
func (s *Store) IngestKeys(ctx context.Context) ([]roomsensor.Key, error) {
	rows, err := s.queries.IngestKeyListAll(ctx, s.admission)
	if err != nil {
		return nil, fmt.Errorf("listing ingest keys: %w", translate(err))
	}
	return convert(rows, ingestKey), nil
}

// TeamIngestKeys lists the ingest keys of a team, the oldest first.
func (s *Store) TeamIngestKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if _, err := s.Team(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.queries.IngestKeyList(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing ingest keys: %w", translate(err))
	}
	return convert(rows, ingestKey), nil
}

// CreateIngestKey stores an ingest key, without the secret, which only the caller knows.
func (s *Store) CreateIngestKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error) {
	row, err := s.queries.IngestKeyInsert(ctx, s.pool, db.IngestKeyInsertParams{
		KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:], Label: key.Label,
	})
	if err != nil {
		return roomsensor.Key{}, translateInsert(err, "creating an ingest key", key.TeamID)
	}
	return ingestKey(&row), nil
}

// RevokeIngestKey revokes an ingest key. A second revocation changes nothing.
func (s *Store) RevokeIngestKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	row, err := s.queries.IngestKeyRevoke(ctx, s.pool, keyID)
	if err != nil {
		return roomsensor.Key{}, translateByID(err, "revoking an ingest key", roomsensor.KindIngestKey, keyID)
	}
	return ingestKey(&row), nil
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
