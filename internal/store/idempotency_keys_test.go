package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// renameOnce gives the device a name in an idempotent change and returns the name as the response.
func (f *fixture) renameOnce(t *testing.T, team uuid.UUID, name string, key *roomsensor.IdempotencyKey) (string, bool, error) {
	t.Helper()
	response, replayed, err := f.Idempotently(t.Context(), *key,
		func(ctx context.Context, tx store.DeviceUpdater) ([]byte, error) {
			d, err := tx.UpdateDevice(ctx, team, f.device, rename(name))
			if err != nil {
				return nil, err
			}
			return []byte(*d.DisplayName), nil
		})
	return string(response), replayed, err
}

// idempotencyKey returns a key that belongs to a new API key, which the table refers to.
func (f *fixture) idempotencyKey(t *testing.T, body string) *roomsensor.IdempotencyKey {
	t.Helper()
	id, _, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	key, err := f.CreateAPIKey(t.Context(), roomsensor.Key{ID: id, TeamID: f.team, SecretSHA256: sum, Scope: roomsensor.ScopeReadWrite})
	require.NoError(t, err)
	return &roomsensor.IdempotencyKey{KeyID: key.ID, Method: "PATCH", Path: "/v1/devices/x", Key: "k", BodySHA256: sha256.Sum256([]byte(body))}
}

// TestIdempotentlyConcurrent checks that of many concurrent requests with one key, on two replicas, one runs and the
// others get its response (spec 8).
func TestIdempotentlyConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := open(t, f.url, store.API)
	key := f.idempotencyKey(t, "body")
	var runs, replays atomic.Int32
	var requests errgroup.Group
	for i := range 100 {
		s := []*store.Store{f.Store, other}[i%2]
		requests.Go(func() error {
			body, replayed, err := s.Idempotently(t.Context(), *key, func(context.Context, store.DeviceUpdater) ([]byte, error) {
				runs.Add(1)
				return []byte("first response"), nil
			})
			if replayed {
				replays.Add(1)
			}
			if err == nil && string(body) != "first response" {
				return fmt.Errorf("responded %q", body)
			}
			return err
		})
	}
	require.NoError(t, requests.Wait())
	require.EqualValues(t, 1, runs.Load())
	require.EqualValues(t, 99, replays.Load())
}

func TestIdempotently(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key := f.idempotencyKey(t, "body")
	change := func(name string, key *roomsensor.IdempotencyKey) (string, bool, error) {
		return f.renameOnce(t, f.team, name, key)
	}
	body, replayed, err := change("first", key)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "first", body)

	different := *key
	different.BodySHA256[0]++
	_, _, err = change("second", &different)
	require.ErrorIs(t, err, roomsensor.ErrBodyDiffers)

	elsewhere := *key
	elsewhere.Path = "/v1/devices/y"
	body, replayed, err = change("elsewhere", &elsewhere)
	require.NoError(t, err)
	require.False(t, replayed, "the same key on a different path is another request")
	require.Equal(t, "elsewhere", body)

	f.exec(t, "UPDATE idempotency_keys SET created_at = created_at - interval '24 hours'")
	body, replayed, err = change("a day later", &different)
	require.NoError(t, err)
	require.False(t, replayed, "keys expire after 24 hours")
	require.Equal(t, "a day later", body)

	purged, err := f.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, purged)
}

// TestIdempotentlyError checks that a failed change does not use up the key (decision 23).
func TestIdempotentlyError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key := f.idempotencyKey(t, "body")
	_, _, err := f.renameOnce(t, uuid.New(), "x", key)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	body, replayed, err := f.renameOnce(t, f.team, "x", key)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "x", body)
}
