package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// requireMissing checks that err is a NotFoundError of a kind.
func requireMissing(t *testing.T, err error, kind roomsensor.Kind) {
	t.Helper()
	var missing *roomsensor.NotFoundError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, kind, missing.Kind)
	require.NotEmpty(t, missing.ID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id, _, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	expires := at("2030-01-01T00:00:00Z")
	_, err := f.CreateAPIKey(t.Context(), roomsensor.Key{
		ID: id, TeamID: f.team, SecretSHA256: sum, Scope: roomsensor.ScopeRead, Label: new("CI"), ExpiresAt: &expires,
	})
	require.NoError(t, err)
	key, err := f.APIKey(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, sum, key.SecretSHA256)
	require.True(t, key.ExpiresAt.Equal(expires))

	revoked, err := f.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	again, err := f.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, revoked.RevokedAt, again.RevokedAt, "the first revocation counts")

	_, err = f.APIKey(t.Context(), "none")
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.RevokeAPIKey(t.Context(), "none")
	requireMissing(t, err, roomsensor.KindAPIKey)
	_, err = f.CreateAPIKey(t.Context(), roomsensor.Key{ID: "x", TeamID: uuid.New(), SecretSHA256: sum, Scope: roomsensor.ScopeRead})
	requireMissing(t, err, roomsensor.KindTeam)
	_, err = f.APIKeys(t.Context(), uuid.New())
	requireMissing(t, err, roomsensor.KindTeam)

	list, err := f.APIKeys(t.Context(), f.team)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// TestIngestKeys checks that ingest keys are separate from API keys.
func TestIngestKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err := f.CreateIngestKey(t.Context(), roomsensor.Key{ID: id, TeamID: f.team, SecretSHA256: sum})
	require.NoError(t, err)
	_, err = f.APIKey(t.Context(), id)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	all, err := f.IngestKeys(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = f.RevokeIngestKey(t.Context(), id)
	require.NoError(t, err)
	list, err := f.TeamIngestKeys(t.Context(), f.team)
	require.NoError(t, err)
	require.NotNil(t, list[0].RevokedAt)
	_, err = f.RevokeIngestKey(t.Context(), "none")
	requireMissing(t, err, roomsensor.KindIngestKey)
}
