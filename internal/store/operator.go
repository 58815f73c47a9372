package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// What the operator's commands do. They know no team; what they refuse is a
// roomsensor.RefusedError that says what to do.

// CreateTeam makes a team.
func (s *Store) CreateTeam(ctx context.Context, name string) (roomsensor.Team, error) {
	row, err := s.queries.TeamInsert(ctx, s.pool, name)
	if err != nil {
		return roomsensor.Team{}, fmt.Errorf("creating a team: %w", translate(err))
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}

// Teams lists every team, the oldest first.
func (s *Store) Teams(ctx context.Context) ([]roomsensor.Team, error) {
	rows, err := s.queries.TeamList(ctx, s.pool)
	if err != nil {
		return nil, fmt.Errorf("listing teams: %w", translate(err))
	}
	return mapped(rows, func(row *db.TeamListRow) roomsensor.Team {
		return roomsensor.Team{ID: row.ID, Name: row.Name}
	}), nil
}

// CreateAPIKey keeps a key of the API. The caller made its secret and shows it once.
func (s *Store) CreateAPIKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error) {
	row, err := s.queries.APIKeyInsert(ctx, s.pool, db.APIKeyInsertParams{
		KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:],
		Scope: string(key.Scope), Label: key.Label, ExpiresAt: key.ExpiresAt,
	})
	if violates(err, stateForeignKey, "") {
		return roomsensor.Key{}, unknownTeam(key.TeamID)
	}
	if err != nil {
		return roomsensor.Key{}, fmt.Errorf("creating an API key: %w", translate(err))
	}
	return apiKey(&row), nil
}

// APIKeys lists the keys of a team, the oldest first.
func (s *Store) APIKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if err := s.mustHaveTeam(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.queries.APIKeyList(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing API keys: %w", translate(err))
	}
	return mapped(rows, apiKey), nil
}

// RevokeAPIKey ends a key. Doing it again changes nothing.
func (s *Store) RevokeAPIKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	row, err := s.queries.APIKeyRevoke(ctx, s.pool, keyID)
	if err != nil {
		return roomsensor.Key{}, orUnknown(err, "revoking an API key",
			"There is no API key %s. roomsensor key list --team ID shows a team's keys.", keyID)
	}
	return apiKey(&row), nil
}

// CreateIngestKey keeps a credential of the receiver.
func (s *Store) CreateIngestKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error) {
	row, err := s.queries.IngestKeyInsert(ctx, s.pool, db.IngestKeyInsertParams{
		KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:], Label: key.Label,
	})
	if violates(err, stateForeignKey, "") {
		return roomsensor.Key{}, unknownTeam(key.TeamID)
	}
	if err != nil {
		return roomsensor.Key{}, fmt.Errorf("creating an upload credential: %w", translate(err))
	}
	return ingestKey(&row), nil
}

// TeamIngestKeys lists the receiver's credentials of a team, the oldest first.
func (s *Store) TeamIngestKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if err := s.mustHaveTeam(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.queries.IngestKeyList(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing upload credentials: %w", translate(err))
	}
	return mapped(rows, ingestKey), nil
}

// RevokeIngestKey ends a credential of the receiver. Doing it again changes nothing.
func (s *Store) RevokeIngestKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	row, err := s.queries.IngestKeyRevoke(ctx, s.pool, keyID)
	if err != nil {
		return roomsensor.Key{}, orUnknown(err, "revoking an upload credential",
			"There is no upload credential %s. roomsensor ingest-key list --team ID shows a team's.", keyID)
	}
	return ingestKey(&row), nil
}

func (s *Store) mustHaveTeam(ctx context.Context, teamID uuid.UUID) error {
	if _, err := s.queries.TeamGet(ctx, s.pool, teamID); err != nil {
		return orUnknown(err, "reading a team", "%s", string(unknownTeam(teamID)))
	}
	return nil
}

func unknownTeam(id uuid.UUID) roomsensor.RefusedError {
	return refused("There is no team %s. roomsensor team list shows them.", id)
}

func refused(format string, args ...any) roomsensor.RefusedError {
	return roomsensor.RefusedError(fmt.Sprintf(format, args...))
}
