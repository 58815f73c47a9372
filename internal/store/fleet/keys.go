package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// APIKeysByID returns those API keys that exist of the keys with some public ids. It does not wait for pages, because
// it has a connection of its own.
func (s *Store) APIKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error) {
	rows, err := s.Queries.APIKeyGet(ctx, s.Admission, keyIDs)
	if err != nil {
		return nil, fmt.Errorf("reading API keys: %w", pg.Translate(err))
	}
	return pg.Convert(rows, apiKey), nil
}

// APIKeys lists the API keys of a team with their last use, the oldest first.
func (s *Store) APIKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if _, err := s.Team(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.Queries.APIKeyList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing API keys: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.APIKeyListRow) roomsensor.Key {
		key := apiKey(&row.ApiKey)
		key.LastUse = keyUse(key.ID, row.UsedAt, row.Client)
		key.MadeBy, key.MakerLeft = pg.Text(row.MadeBy), row.MakerLeft
		return key
	}), nil
}

// CreateAPIKey stores an API key, without the secret, which only the caller knows. It returns ErrKeyExists if
// its id is taken.
func (s *Store) CreateAPIKey(ctx context.Context, key roomsensor.Key) (created roomsensor.Key, err error) {
	err = s.InChange(ctx, "creating an API key", func(tx pgx.Tx) error {
		row, err := s.Queries.APIKeyInsert(ctx, tx, db.APIKeyInsertParams{
			KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:],
			Scope: string(key.Scope), Label: key.Label, ExpiresAt: key.ExpiresAt, MadeBy: pg.PersonOf(ctx),
		})
		if err != nil {
			return translateKeyInsert(err, "inserting an API key", key.TeamID)
		}
		created = apiKey(&row)
		return nil
	})
	return created, err
}

// RevokeAPIKey revokes an API key of a team. A second revocation changes nothing.
func (s *Store) RevokeAPIKey(ctx context.Context, teamID uuid.UUID, keyID string) (revoked roomsensor.Key, err error) {
	err = s.InChange(ctx, "revoking an API key", func(tx pgx.Tx) error {
		row, err := s.Queries.APIKeyRevoke(ctx, tx, db.APIKeyRevokeParams{KeyID: keyID, TeamID: teamID})
		if err != nil {
			return pg.TranslateByID(err, "updating an API key", roomsensor.KindAPIKey, keyID)
		}
		revoked = apiKey(&row)
		return nil
	})
	return revoked, err
}

// RotateAPIKey stores another key with the scope, label and expiration time of a key of a team. It lets that one expire
// after overlap unless it expires before that. It returns both. The error of a key that is not valid is a
// KeyNotValidError; it is ErrKeyExists if the id of the other key is taken.
func (s *Store) RotateAPIKey(
	ctx context.Context, teamID uuid.UUID, keyID string, next roomsensor.Key, overlap time.Duration,
) (old, created roomsensor.Key, err error) {
	err = s.InChange(ctx, "replacing an API key", func(tx pgx.Tx) error {
		before, err := s.Queries.APIKeyLock(ctx, tx, db.APIKeyLockParams{KeyID: keyID, TeamID: teamID})
		if err != nil {
			return pg.TranslateByID(err, "reading an API key", roomsensor.KindAPIKey, keyID)
		}
		after, err := s.Queries.APIKeyExpire(ctx, tx, db.APIKeyExpireParams{
			KeyID: keyID, TeamID: teamID, OverlapSeconds: overlap.Seconds(),
		})
		if err != nil {
			return translateExpire(err, keyID, teamID)
		}
		inserted, err := s.Queries.APIKeyInsert(ctx, tx, db.APIKeyInsertParams{
			KeyID: next.ID, TeamID: teamID, SecretSha256: next.SecretSHA256[:],
			Scope: before.Scope, Label: before.Label, ExpiresAt: before.ExpiresAt, MadeBy: pg.PersonOf(ctx),
		})
		if err != nil {
			return translateKeyInsert(err, "inserting an API key", teamID)
		}
		old, created = apiKey(&after), apiKey(&inserted)
		return nil
	})
	return old, created, err
}

// translateKeyInsert maps the error of an insert of a key.
func translateKeyInsert(err error, doing string, teamID uuid.UUID) error {
	if pg.Violates(err, pg.StateUnique, "") {
		return fmt.Errorf("%s: %w", doing, roomsensor.ErrKeyExists)
	}
	return pg.TranslateInsert(err, doing, teamID)
}

// translateExpire maps the error of a query that expires a valid key.
func translateExpire(err error, keyID string, teamID uuid.UUID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return &roomsensor.KeyNotValidError{ID: keyID, TeamID: teamID}
	}
	return err
}

// IngestKeysByID returns those ingest keys that exist of the keys with some public ids.
func (s *Store) IngestKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error) {
	rows, err := s.Queries.IngestKeyGet(ctx, s.Admission, keyIDs)
	return receiverKeys(rows, err, func(row *db.IngestKeyGetRow) roomsensor.Key {
		return receiverKey(&row.IngestKey, row.Format)
	})
}

// IngestKeysAfter lists up to most ingest keys of all teams, in the order of their ids, that come after an id.
func (s *Store) IngestKeysAfter(ctx context.Context, keyID string, most int32) ([]roomsensor.Key, error) {
	rows, err := s.Queries.IngestKeyListAfter(ctx, s.Admission, db.IngestKeyListAfterParams{After: keyID, Most: most})
	return receiverKeys(rows, err, func(row *db.IngestKeyListAfterRow) roomsensor.Key {
		return receiverKey(&row.IngestKey, row.Format)
	})
}

// IngestKeyPosition returns the position from which IngestKeysChanged lists what a query before did not see.
func (s *Store) IngestKeyPosition(ctx context.Context) (roomsensor.KeyPosition, error) {
	row, err := s.Queries.IngestKeyPosition(ctx, s.Admission)
	if err != nil {
		return roomsensor.KeyPosition{}, fmt.Errorf("reading the position of ingest keys: %w", pg.Translate(err))
	}
	return roomsensor.KeyPosition{OldestRunning: row.OldestRunning, ServerStarted: row.ServerStarted}, nil
}

// IngestKeysChanged lists up to most ingest keys that were created or revoked since a position. It finds a key also if
// its transaction began before the position and committed after it. It repeats keys that changed shortly before.
func (s *Store) IngestKeysChanged(
	ctx context.Context, since roomsensor.KeyPosition, most int32,
) ([]roomsensor.Key, error) {
	rows, err := s.Queries.IngestKeyListChanged(ctx, s.Admission, db.IngestKeyListChangedParams{
		Since: since.OldestRunning, Most: most,
	})
	return receiverKeys(rows, err, func(row *db.IngestKeyListChangedRow) roomsensor.Key {
		return receiverKey(&row.IngestKey, row.Format)
	})
}

// receiverKeys converts the rows of a query for receivers.
func receiverKeys[R any](rows []R, err error, convert func(*R) roomsensor.Key) ([]roomsensor.Key, error) {
	if err != nil {
		return nil, fmt.Errorf("reading ingest keys: %w", pg.Translate(err))
	}
	return pg.Convert(rows, convert), nil
}

// receiverKey returns a key with the format of its source, which is nil if the source does not take messages.
func receiverKey(row *db.IngestKey, format *string) roomsensor.Key {
	key := ingestKey(row)
	if key.Source != nil {
		key.Source.Format = pg.Text(format)
	}
	return key
}

// TeamIngestKeys lists the ingest keys of a team with their last use, the oldest first.
func (s *Store) TeamIngestKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error) {
	if _, err := s.Team(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.Queries.IngestKeyList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing ingest keys: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.IngestKeyListRow) roomsensor.Key {
		key := ingestKey(&row.IngestKey)
		key.LastUse = keyUse(key.ID, row.UsedAt, row.Client)
		key.MadeBy, key.MakerLeft = pg.Text(row.MadeBy), row.MakerLeft
		return key
	}), nil
}

// CreateIngestKey stores an ingest key, without the secret, which only the caller knows. It returns ErrKeyExists if
// its id is taken.
func (s *Store) CreateIngestKey(ctx context.Context, key roomsensor.Key) (created roomsensor.Key, err error) {
	err = s.InChange(ctx, "creating an ingest key", func(tx pgx.Tx) error {
		if key.Source != nil { // It must be a source of the team.
			_, err := s.Queries.SourceGet(ctx, tx, db.SourceGetParams{TeamID: key.TeamID, SourceID: key.Source.ID})
			if err != nil {
				return pg.TranslateByID(err, "reading a source", roomsensor.KindSource, key.Source.ID.String())
			}
		}
		created, err = s.insertIngestKey(ctx, tx, key)
		return err
	})
	return created, err
}

func (s *Store) insertIngestKey(ctx context.Context, tx pgx.Tx, key roomsensor.Key) (roomsensor.Key, error) {
	p := db.IngestKeyInsertParams{
		KeyID: key.ID, TeamID: key.TeamID, SecretSha256: key.SecretSHA256[:], Label: key.Label, ExpiresAt: key.ExpiresAt,
		MadeBy: pg.PersonOf(ctx),
	}
	if key.Source != nil {
		p.SourceID = &key.Source.ID
	}
	row, err := s.Queries.IngestKeyInsert(ctx, tx, p)
	if err != nil {
		return key, translateKeyInsert(err, "inserting an ingest key", key.TeamID)
	}
	return ingestKey(&row), nil
}

// RotateIngestKey is RotateAPIKey for an ingest key.
func (s *Store) RotateIngestKey(
	ctx context.Context, teamID uuid.UUID, keyID string, next roomsensor.Key, overlap time.Duration,
) (old, created roomsensor.Key, err error) {
	err = s.InChange(ctx, "replacing an ingest key", func(tx pgx.Tx) error {
		before, err := s.Queries.IngestKeyLock(ctx, tx, db.IngestKeyLockParams{KeyID: keyID, TeamID: teamID})
		if err != nil {
			return pg.TranslateByID(err, "reading an ingest key", roomsensor.KindIngestKey, keyID)
		}
		after, err := s.Queries.IngestKeyExpire(ctx, tx, db.IngestKeyExpireParams{
			KeyID: keyID, TeamID: teamID, OverlapSeconds: overlap.Seconds(),
		})
		if err != nil {
			return translateExpire(err, keyID, teamID)
		}
		old = ingestKey(&after)
		next.TeamID, next.Source, next.Label, next.ExpiresAt = teamID, old.Source, before.Label, before.ExpiresAt
		created, err = s.insertIngestKey(ctx, tx, next)
		return err
	})
	return old, created, err
}

// RevokeIngestKey revokes an ingest key of a team. A second revocation changes nothing.
func (s *Store) RevokeIngestKey(
	ctx context.Context, teamID uuid.UUID, keyID string,
) (revoked roomsensor.Key, err error) {
	err = s.InChange(ctx, "revoking an ingest key", func(tx pgx.Tx) error {
		row, err := s.Queries.IngestKeyRevoke(ctx, tx, db.IngestKeyRevokeParams{KeyID: keyID, TeamID: teamID})
		if err != nil {
			return pg.TranslateByID(err, "updating an ingest key", roomsensor.KindIngestKey, keyID)
		}
		revoked = ingestKey(&row)
		return nil
	})
	return revoked, err
}

func apiKey(row *db.ApiKey) roomsensor.Key {
	return roomsensor.Key{
		ID: row.KeyID, TeamID: row.TeamID, SecretSHA256: [sha256.Size]byte(row.SecretSha256),
		Scope: roomsensor.Scope(row.Scope), Label: row.Label, CreatedAt: row.CreatedAt,
		ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt,
	}
}

func ingestKey(row *db.IngestKey) roomsensor.Key {
	key := roomsensor.Key{
		ID: row.KeyID, TeamID: row.TeamID, SecretSHA256: [sha256.Size]byte(row.SecretSha256),
		Label: row.Label, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt,
	}
	if row.SourceID != nil {
		key.Source = &roomsensor.KeySource{ID: *row.SourceID}
	}
	return key
}

// RecordAPIKeyUses stores the last uses of some distinct API keys. It passes over keys that do not exist.
func (s *Store) RecordAPIKeyUses(ctx context.Context, uses []roomsensor.KeyUse) error {
	if err := s.Queries.APIKeyUseUpsert(ctx, s.Pool, keyUseParams(uses)); err != nil {
		return fmt.Errorf("recording the use of API keys: %w", pg.Translate(err))
	}
	return nil
}

// RecordIngestKeyUses is RecordAPIKeyUses for ingest keys.
func (s *Store) RecordIngestKeyUses(ctx context.Context, uses []roomsensor.KeyUse) error {
	if err := s.Queries.IngestKeyUseUpsert(ctx, s.Pool, db.IngestKeyUseUpsertParams(keyUseParams(uses))); err != nil {
		return fmt.Errorf("recording the use of ingest keys: %w", pg.Translate(err))
	}
	return nil
}

func keyUseParams(uses []roomsensor.KeyUse) (p db.APIKeyUseUpsertParams) {
	for i := range uses {
		p.KeyIds = append(p.KeyIds, uses[i].KeyID)
		p.UsedAt = append(p.UsedAt, uses[i].At)
		p.Clients = append(p.Clients, uses[i].Client)
	}
	return p
}

// keyUse converts the last use of a key; at is nil for a key that was never used.
func keyUse(keyID string, at *time.Time, client *string) *roomsensor.KeyUse {
	if at == nil {
		return nil
	}
	return &roomsensor.KeyUse{KeyID: keyID, At: at.UTC(), Client: pg.Text(client)}
}
