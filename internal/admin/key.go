package admin

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

// newKey returns a key with a new id and secret. Only text contains the secret; the database stores a hash.
func newKey(kind roomsensor.KeyKind, key roomsensor.Key) (_ roomsensor.Key, text string) {
	key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(kind)
	return key, text
}

// CreateAPIKey creates an API key with the team, scope, label and expiration time of key. Only its result contains the
// secret.
func (o *Operator) CreateAPIKey(ctx context.Context, key roomsensor.Key) (NewAPIKey, error) {
	key, text := newKey(roomsensor.APIKey, key)
	key, err := o.store.CreateAPIKey(ctx, key)
	if err != nil {
		return NewAPIKey{}, o.explain(ctx, err)
	}
	return viewNewAPIKey(&key, text), nil
}

// APIKeys lists the API keys of a team, oldest first.
func (o *Operator) APIKeys(ctx context.Context, teamID uuid.UUID) (List[ListedAPIKey], error) {
	keys, err := o.store.APIKeys(ctx, teamID)
	return listOf(keys, viewListedAPIKey), o.explain(ctx, err)
}

// RotateAPIKey creates another key for the same team with the scope, label and expiration time of a key, which expires
// after overlap unless it expires before that.
func (o *Operator) RotateAPIKey(ctx context.Context, keyID string, overlap time.Duration) (RotatedAPIKey, error) {
	next, text := newKey(roomsensor.APIKey, roomsensor.Key{})
	old, err := o.findAPIKey(ctx, keyID)
	if err == nil {
		old, next, err = o.store.RotateAPIKey(ctx, old.TeamID, keyID, next, overlap)
	}
	if err != nil {
		return RotatedAPIKey{}, o.explainRotation(ctx, "key", err)
	}
	return RotatedAPIKey{viewNewAPIKey(&next, text), viewReplacedKey(&old)}, nil
}

// RevokeAPIKey revokes an API key. Revoking it again changes nothing.
func (o *Operator) RevokeAPIKey(ctx context.Context, keyID string) (APIKey, error) {
	key, err := o.findAPIKey(ctx, keyID)
	if err == nil {
		key, err = o.store.RevokeAPIKey(ctx, key.TeamID, keyID)
	}
	if err != nil {
		return APIKey{}, o.explain(ctx, err)
	}
	return viewAPIKey(&key), nil
}

// CreateIngestKey creates a credential for uploads to the receiver, or for a source, with the team, label and
// expiration time of key. Only its result contains the secret.
func (o *Operator) CreateIngestKey(ctx context.Context, key roomsensor.Key) (NewIngestKey, error) {
	key, text := newKey(roomsensor.IngestKey, key)
	key, err := o.store.CreateIngestKey(ctx, key)
	if err != nil {
		return NewIngestKey{}, o.explain(ctx, err)
	}
	return viewNewIngestKey(&key, text), nil
}

// IngestKeys lists the ingest keys of a team, oldest first.
func (o *Operator) IngestKeys(ctx context.Context, teamID uuid.UUID) (List[ListedIngestKey], error) {
	keys, err := o.store.TeamIngestKeys(ctx, teamID)
	return listOf(keys, viewListedIngestKey), o.explain(ctx, err)
}

// RotateIngestKey is RotateAPIKey for an ingest key.
func (o *Operator) RotateIngestKey(ctx context.Context, keyID string, overlap time.Duration) (RotatedIngestKey, error) {
	next, text := newKey(roomsensor.IngestKey, roomsensor.Key{})
	old, err := o.findIngestKey(ctx, keyID)
	if err == nil {
		old, next, err = o.store.RotateIngestKey(ctx, old.TeamID, keyID, next, overlap)
	}
	if err != nil {
		return RotatedIngestKey{}, o.explainRotation(ctx, "ingest-key", err)
	}
	return RotatedIngestKey{viewNewIngestKey(&next, text), viewReplacedKey(&old)}, nil
}

// RevokeIngestKey revokes an ingest key. Revoking it again changes nothing.
func (o *Operator) RevokeIngestKey(ctx context.Context, keyID string) (IngestKey, error) {
	key, err := o.findIngestKey(ctx, keyID)
	if err == nil {
		key, err = o.store.RevokeIngestKey(ctx, key.TeamID, keyID)
	}
	if err != nil {
		return IngestKey{}, o.explain(ctx, err)
	}
	return viewIngestKey(&key), nil
}

func (o *Operator) findAPIKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	keys, err := o.store.APIKeysByID(ctx, []string{keyID})
	return onlyKey(keys, err, roomsensor.KindAPIKey, keyID)
}

func (o *Operator) findIngestKey(ctx context.Context, keyID string) (roomsensor.Key, error) {
	keys, err := o.store.IngestKeysByID(ctx, []string{keyID})
	return onlyKey(keys, err, roomsensor.KindIngestKey, keyID)
}

func onlyKey(keys []roomsensor.Key, err error, kind roomsensor.Kind, keyID string) (roomsensor.Key, error) {
	switch {
	case err != nil:
		return roomsensor.Key{}, err
	case len(keys) == 0:
		return roomsensor.Key{}, &roomsensor.NotFoundError{Kind: kind, ID: keyID}
	}
	return keys[0], nil
}

// explainRotation is explain for a rotation, which refuses keys that are no longer valid.
func (o *Operator) explainRotation(ctx context.Context, command string, err error) error {
	if invalid, ok := errors.AsType[*roomsensor.KeyNotValidError](err); ok {
		return process.Refusef("The key %s was revoked or has expired, so there is nothing to replace. "+
			"Create a new one: roomsensor %s create --team %s.", invalid.ID, command, invalid.TeamID)
	}
	return o.explain(ctx, err)
}
