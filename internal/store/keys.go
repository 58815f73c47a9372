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

// IngestKeysByID returns those ingest keys that exist of the keys with some public ids.
func (s *Store) IngestKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error) {
	rows, err := s.queries.IngestKeyGet(ctx, s.admission, keyIDs)
	return ingestKeys(rows, err)
}

// IngestKeysAfter lists up to most ingest keys of all teams, in the order of their ids, that come after an id.
func (s *Store) IngestKeysAfter(ctx context.Context, keyID string, most int32) ([]roomsensor.Key, error) {
	rows, err := s.queries.IngestKeyListAfter(ctx, s.admission, db.IngestKeyListAfterParams{After: keyID, Most: most})
	return ingestKeys(rows, err)
}

// IngestKeyPosition returns the position from which IngestKeysChanged lists what a query before did not see.
func (s *Store) IngestKeyPosition(ctx context.Context) (roomsensor.KeyPosition, error) {
	row, err := s.queries.IngestKeyPosition(ctx, s.admission)
	if err != nil {
		return roomsensor.KeyPosition{}, fmt.Errorf("reading the position of ingest keys: %w", translate(err))
	}
	return roomsensor.KeyPosition{OldestRunning: row.OldestRunning, ServerStarted: row.ServerStarted}, nil
}

// IngestKeysChanged lists up to most ingest keys that were created or revoked since a position. It finds a key also if
// its transaction began before the position and committed after it. It repeats keys that changed shortly before.
func (s *Store) IngestKeysChanged(
	ctx context.Context, since roomsensor.KeyPosition, most int32,
) ([]roomsensor.Key, error) {
	rows, err := s.queries.IngestKeyListChanged(ctx, s.admission, db.IngestKeyListChangedParams{
		Since: since.OldestRunning, Most: most,
	})
	return ingestKeys(rows, err)
}

func ingestKeys(rows []db.IngestKey, err error) ([]roomsensor.Key, error) {
	if err != nil {
		return nil, fmt.Errorf("reading ingest keys: %w", translate(err))
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
