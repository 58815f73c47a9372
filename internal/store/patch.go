package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

const (
	// onceWait is how long a request waits for another with the same
	// Idempotency-Key (decision 23), first within the process and for the rest of
	// it in the database.
	onceWait    = 5 * time.Second
	onceTimeout = "8s"
)

// UpdateDevice changes a device and renders the answer in one transaction, in
// which the answer is also kept for a retry with the same Idempotency-Key
// (decision 23). Without once the change just runs. Errors are ErrNotFound,
// ErrBodyDiffers, validation_failed for too many tags after the merge, and
// overloaded after 5 s of waiting for a concurrent request.
func (s *Store) UpdateDevice(
	ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch, once *roomsensor.Once,
	render func(roomsensor.Device) ([]byte, error),
) (body []byte, replayed bool, err error) {
	waitUntil := time.Now().Add(onceWait)
	if once != nil {
		release, err := s.waitTurn(ctx, once, waitUntil)
		if err != nil {
			return nil, false, err
		}
		defer release()
	}
	err = s.inTx(ctx, "changing a device", func(tx pgx.Tx) error {
		if once != nil {
			if body, replayed, err = s.claim(ctx, tx, once, waitUntil); err != nil || replayed {
				return err
			}
		}
		if err := s.applyPatch(ctx, tx, teamID, deviceID, patch); err != nil {
			return err
		}
		changed, err := s.device(ctx, tx, teamID, deviceID)
		if err != nil {
			return err
		}
		if body, err = render(changed); err != nil || once == nil {
			return err
		}
		return s.queries.IdempotencyKeep(ctx, tx, db.IdempotencyKeepParams{
			Response: body, KeyID: once.KeyID, Method: once.Method, Path: once.Path, IdempotencyKey: once.Key,
		})
	})
	return body, replayed, err
}

// waitTurn lets requests with one key pass one by one before they take a
// connection: 99 that wait must not drain the pool.
func (s *Store) waitTurn(ctx context.Context, once *roomsensor.Once, until time.Time) (release func(), err error) {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	release, err = s.changes.lock(waiting, strings.Join([]string{once.KeyID, once.Method, once.Path, once.Key}, "\n"))
	if err != nil {
		return nil, fmt.Errorf("waiting for a request with the same Idempotency-Key: %w", translate(err))
	}
	return release, nil
}

// claim makes the request's entry, or returns the answer that is kept.
func (s *Store) claim(
	ctx context.Context, tx pgx.Tx, once *roomsensor.Once, waitUntil time.Time,
) (body []byte, replayed bool, err error) {
	// None at all would be without end.
	wait := max(1, time.Until(waitUntil).Milliseconds())
	err = s.set(ctx, tx, "lock_timeout", fmt.Sprintf("%dms", wait), "statement_timeout", onceTimeout)
	if err != nil {
		return nil, false, err
	}
	_, err = s.queries.IdempotencyClaim(ctx, tx, db.IdempotencyClaimParams{
		KeyID: once.KeyID, Method: once.Method, Path: once.Path, IdempotencyKey: once.Key, BodySha256: once.BodySHA256[:],
	})
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, false, err
	}
	kept, err := s.queries.IdempotencyGet(ctx, tx, db.IdempotencyGetParams{
		KeyID: once.KeyID, Method: once.Method, Path: once.Path, IdempotencyKey: once.Key,
	})
	switch {
	case err != nil:
		return nil, false, err
	case !bytes.Equal(kept.BodySha256, once.BodySHA256[:]):
		return nil, false, roomsensor.ErrBodyDiffers
	}
	return kept.Response, true, nil
}

func (s *Store) applyPatch(
	ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
) error {
	row, err := s.queries.DeviceLock(ctx, tx, db.DeviceLockParams{TeamID: teamID, DeviceID: deviceID})
	if err != nil {
		return err
	}
	var tags map[string]string
	if err := json.Unmarshal(row.Metadata, &tags); err != nil {
		return fmt.Errorf("reading metadata: %w", err)
	}
	tags = patch.Metadata.Apply(tags)
	if len(patch.Metadata.Values) > 0 && len(tags) > roomsensor.MaxMetadataKeys {
		return roomsensor.Invalid("metadata", fmt.Sprintf(
			"metadata would have %d keys; at most %d are allowed. Remove some by sending them as null.",
			len(tags), roomsensor.MaxMetadataKeys))
	}
	if patch.SetDisplayName {
		row.DisplayName = patch.DisplayName
	}
	metadata, err := json.Marshal(tags)
	if err != nil {
		return fmt.Errorf("writing metadata: %w", err)
	}
	return s.queries.DeviceUpdate(ctx, tx, db.DeviceUpdateParams{
		TeamID: teamID, DeviceID: deviceID, DisplayName: row.DisplayName, Metadata: metadata,
	})
}

// PurgeIdempotency removes the answers that were kept for 24 hours and tells
// how many they were.
func (s *Store) PurgeIdempotency(ctx context.Context) (int64, error) {
	n, err := s.queries.IdempotencyPurge(ctx, s.pool)
	if err != nil {
		return 0, fmt.Errorf("removing old idempotency entries: %w", translate(err))
	}
	return n, nil
}
