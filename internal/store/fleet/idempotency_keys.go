package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

const (
	// changeWait limits a request's wait for another change of the device, or for another request with the same
	// Idempotency-Key (decision 23): first within the process, and for the rest of it in the database.
	changeWait = 5 * time.Second
	// idempotencyStatementTimeout bounds the statement that claims a key, which includes that wait.
	idempotencyStatementTimeout = "8s"
)

// Idempotently runs a change at most once for an Idempotency-Key (decision 23). It calls run with a transaction, stores
// the response that run returns under the key in the same transaction, and commits. An error of run rolls back and is
// returned. For a key that was used within 24 hours it returns the stored response, and replayed is true. Other errors
// are roomsensor.ErrBodyDiffers for a key that was used with another body, and overloaded after 5 s of waiting for a
// concurrent request with the same key.
func (s *Store) Idempotently(
	ctx context.Context, key roomsensor.IdempotencyKey,
	run func(ctx context.Context, tx roomsensor.DeviceUpdater) ([]byte, error),
) (response []byte, replayed bool, err error) {
	waitUntil := time.Now().Add(changeWait)
	turn, err := s.waitForDevice(ctx, key.TeamID, path.Base(key.Path), waitUntil)
	if err != nil {
		return nil, false, err
	}
	defer turn.Release()
	err = s.InTx(ctx, "running an idempotent change", func(tx pgx.Tx) error {
		if response, replayed, err = s.claimKey(ctx, tx, &key, waitUntil); err != nil || replayed {
			return err
		}
		if response, err = run(ctx, deviceUpdater{s, tx}); err != nil {
			return err
		}
		if err := s.limitResponses(ctx, tx, key.KeyID, len(response)); err != nil {
			return err
		}
		return s.Queries.IdempotencyKeyStore(ctx, tx, db.IdempotencyKeyStoreParams{
			Response: response, KeyID: key.KeyID, Method: key.Method, Path: key.Path, IdempotencyKey: key.Key,
		})
	})
	return response, replayed, err
}

// deviceChanges limits the changes of a device that run at the same time to one per process. The others wait before
// they take a connection: those that wait for the row or for the same Idempotency-Key must not use up the pool.
func deviceChanges() *fairshare.Limiter {
	return fairshare.New(fairshare.Config{Name: "device_changes", Key: fairshare.Limit{
		Most: 1, Waiting: 128, RetryAfter: pg.RetryAfter,
		Message: "Too many changes of the device are in progress. Send them one after the other, or put them into one.",
	}})
}

// waitForDevice waits until no other change of a device by a team runs, or for a time. Whether the device belongs to
// the team is not known yet: those who name devices of others must not delay their changes.
func (s *Store) waitForDevice(
	ctx context.Context, teamID uuid.UUID, deviceID string, until time.Time,
) (*fairshare.Held, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return s.changes.Acquire(ctx, fairshare.Owner{Key: teamID.String() + deviceID}, 1)
}

// claimKey inserts the key of a request, or returns the response that is stored under it.
func (s *Store) claimKey(
	ctx context.Context, tx pgx.Tx, key *roomsensor.IdempotencyKey, waitUntil time.Time,
) (response []byte, replayed bool, err error) {
	// At least 1 ms, because lock_timeout 0 means no timeout.
	wait := max(1, time.Until(waitUntil).Milliseconds())
	var claim pgx.Batch // One round trip.
	claim.Queue(db.SettingsSet, pg.Positional(pg.Settings(
		"lock_timeout", fmt.Sprintf("%dms", wait), "statement_timeout", idempotencyStatementTimeout))...)
	var claimedAt time.Time
	claim.Queue(db.IdempotencyKeyClaim, pg.Positional(db.IdempotencyKeyClaimParams{
		KeyID: key.KeyID, Method: key.Method, Path: key.Path, IdempotencyKey: key.Key, BodySha256: key.BodySHA256[:],
	})...).QueryRow(func(row pgx.Row) error { return row.Scan(&claimedAt) })
	err = tx.SendBatch(ctx, &claim).Close()
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, false, err //nolint:wrapcheck // InTx wraps it.
	}
	stored, err := s.Queries.IdempotencyKeyGet(ctx, tx, db.IdempotencyKeyGetParams{
		KeyID: key.KeyID, Method: key.Method, Path: key.Path, IdempotencyKey: key.Key,
	})
	switch {
	case err != nil:
		return nil, false, err
	case !bytes.Equal(stored.BodySha256, key.BodySHA256[:]):
		return nil, false, roomsensor.ErrBodyDiffers
	}
	return stored.Response, true, nil
}

const (
	// largeResponse is the size from which a response counts against maxResponses. A key can send some 86,000 requests a
	// day, so that its small responses take at most 350 MB.
	largeResponse = 4 << 10
	// maxResponses is the limit of the bytes of large responses that a key stores in a day: 5,000 of the largest. Without
	// it, a key could store 9 GB by changing one tag of a device again and again.
	maxResponses = 512 << 20
	// maxTeamResponses is that limit for all keys of a team, whose admins may create 200 in 30 days.
	maxTeamResponses = 4 * maxResponses
	// responsesRetryAfter is the Retry-After of a request beyond it. The bytes are counted by the hour.
	responsesRetryAfter = time.Hour
)

// limitResponses counts a response that is being stored, and returns overloaded if its key, or the team of the key, has
// stored too many bytes.
func (s *Store) limitResponses(ctx context.Context, tx pgx.Tx, keyID string, bytes int) error {
	if bytes < largeResponse {
		return nil
	}
	stored, err := s.Queries.IdempotencyBytesAdd(ctx, tx, db.IdempotencyBytesAddParams{KeyID: keyID, Bytes: int64(bytes)})
	if err != nil || stored.OfKey <= maxResponses && stored.OfTeam <= maxTeamResponses {
		return err
	}
	return &roomsensor.Error{
		Code: roomsensor.CodeOverloaded, RetryAfter: responsesRetryAfter, Limit: "idempotency_keys",
		Message: "The responses stored for the Idempotency-Keys of this key exceed 512 MiB in 24 hours, " +
			"or those of its team 2 GiB. Send the change without an Idempotency-Key, or wait.",
	}
}

// purgeEntries is the number of idempotency keys that are deleted by one statement. Their responses can have 100 KB
// each.
const purgeEntries = 1000

// PurgeIdempotency deletes the keys that are older than 24 hours and returns their number. If another process does so
// at the same time, it leaves the rest to that process.
func (s *Store) PurgeIdempotency(ctx context.Context) (keys int64, err error) {
	for {
		n, err := s.Queries.IdempotencyKeyPurge(ctx, s.Pool, purgeEntries)
		if err != nil {
			return keys, fmt.Errorf("deleting old idempotency keys: %w", pg.Translate(err))
		}
		keys += n
		if n == 0 {
			break
		}
	}
	if err := s.Queries.IdempotencyBytesPurge(ctx, s.Pool); err != nil {
		return keys, fmt.Errorf("deleting old counts of idempotency keys: %w", pg.Translate(err))
	}
	return keys, nil
}
