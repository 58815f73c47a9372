package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

const patience = storetest.Patience

var (
	at          = storetest.At
	co2         = storetest.CO2
	open        = storetest.Open
	requireCode = storetest.RequireCode
	days        = storetest.Days
	exportFrom  = storetest.From
)

type fixture struct{ *storetest.Fixture }

func setup(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.New(t)}
}

// TestErrors checks which errors a caller sees when the database is unavailable or the context ends.
func TestErrors(t *testing.T) {
	t.Parallel()
	t.Run("an unavailable database is overloaded", func(t *testing.T) {
		t.Parallel()
		s := open(t, "postgres://nobody@127.0.0.1:1/none", store.API)
		_, err := s.Team(t.Context(), uuid.New())
		requireCode(t, err, roomsensor.CodeOverloaded)
		require.Error(t, s.Ping(t.Context()))
	})
	t.Run("an expired deadline is overloaded", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		_, err := f.Team(ctx, f.TeamID)
		requireCode(t, err, roomsensor.CodeOverloaded)
	})
	t.Run("a canceled request stays canceled", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Team(ctx, f.TeamID)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAdmission checks that requests are admitted, and that the database counts as available, while every connection
// for pages is in use.
func TestAdmission(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.HoldConnections(t)
	require.NoError(t, f.Ping(t.Context()))
	_, err := f.APIKeysByID(t.Context(), []string{"unknown"})
	require.NoError(t, err)
	verdict, err := f.CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.True(t, verdict.Allowed)
}
