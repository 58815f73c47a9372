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

// UpdateDevice changes a device and renders the answer. With once that is one
// transaction, in which the answer is also kept for a retry with the same
// Idempotency-Key (decision 23). Errors are ErrNotFound, ErrBodyDiffers,
// validation_failed for too many tags after the merge, and overloaded after 5 s
// of waiting for a concurrent request.
func (s *Store) UpdateDevice(
	ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch, once *roomsensor.Once,
	render func(roomsensor.Device) []byte,
) (body []byte, replayed bool, err error) {
	if once == nil {
		changed, err := s.applyPatch(ctx, s.pool, teamID, deviceID, patch)
		if err != nil {
			return nil, false, fmt.Errorf("changing a device: %w", translate(err))
		}
		return render(changed), false, nil
	}
	waitUntil := time.Now().Add(onceWait)
	release, err := s.waitTurn(ctx, once, waitUntil)
	if err != nil {
		return nil, false, err
	}
	defer release()
	err = s.inTx(ctx, "changing a device", func(tx pgx.Tx) error {
		if body, replayed, err = s.claim(ctx, tx, once, waitUntil); err != nil || replayed {
			return err
		}
		changed, err := s.applyPatch(ctx, tx, teamID, deviceID, patch)
		if err != nil {
			return err
		}
		body = render(changed)
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
	var claim pgx.Batch // One round trip.
	claim.Queue(db.SettingLocal, "lock_timeout", fmt.Sprintf("%dms", wait))
	claim.Queue(db.SettingLocal, "statement_timeout", onceTimeout)
	// In the order in which IdempotencyClaim numbers its parameters, see db.IdempotencyClaimParams.
	var claimedAt time.Time
	claim.Queue(db.IdempotencyClaim, once.KeyID, once.Method, once.Path, once.Key, once.BodySHA256[:]).
		QueryRow(func(row pgx.Row) error { return row.Scan(&claimedAt) })
	err = tx.SendBatch(ctx, &claim).Close()
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, false, err //nolint:wrapcheck // inTx wraps it.
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

// applyPatch changes a device in one statement, whoever else changes it. Only
// where that changed nothing it looks for the reason.
func (s *Store) applyPatch(
	ctx context.Context, conn db.DBTX, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
) (roomsensor.Device, error) {
	change, err := updateParams(teamID, deviceID, patch)
	if err != nil {
		return roomsensor.Device{}, err
	}
	for {
		row, err := s.queries.DeviceUpdate(ctx, conn, change)
		if err == nil {
			changed := db.DeviceGetRow(row)
			return device(&changed)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return roomsensor.Device{}, err
		}
		before, err := s.device(ctx, conn, teamID, deviceID)
		if err != nil {
			return roomsensor.Device{}, err
		}
		if n := len(patch.Metadata.Apply(before.Metadata)); n > roomsensor.MaxMetadataKeys {
			return roomsensor.Device{}, roomsensor.Invalid("metadata", fmt.Sprintf(
				"metadata would have %d keys; at most %d are allowed. Remove some by sending them as null.",
				n, roomsensor.MaxMetadataKeys))
		}
		// Another request removed some of the tags in between.
	}
}

func updateParams(teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch) (db.DeviceUpdateParams, error) {
	removed, set := []string{}, map[string]string{}
	for key, value := range patch.Metadata.Values {
		if value == nil {
			removed = append(removed, key)
		} else {
			set[key] = *value
		}
	}
	tags, err := json.Marshal(set)
	if err != nil {
		return db.DeviceUpdateParams{}, fmt.Errorf("writing metadata: %w", err)
	}
	return db.DeviceUpdateParams{
		TeamID: teamID, DeviceID: deviceID,
		SetDisplayName: patch.SetDisplayName, NewName: patch.DisplayName,
		Clear: patch.Metadata.Clear, Tags: tags, RemovedTags: removed,
		ChangeTags: len(patch.Metadata.Values) > 0, MostTags: roomsensor.MaxMetadataKeys,
	}, nil
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
