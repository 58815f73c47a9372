package ops_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestStreamShares(t *testing.T) {
	t.Parallel()
	f := setup(t)
	team, other := uuid.New(), uuid.New()
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, f.RecordStream(t.Context(), "s", created))
	shares := []roomsensor.StreamShare{
		{Sequence: 1, Bytes: 5}, {Sequence: 2, Team: team, Bytes: 5}, {Sequence: 3, Team: other, Bytes: 5}, {Sequence: 4, Team: team, Bytes: 10},
	}
	list := func() []roomsensor.StreamShare {
		t.Helper()
		got, err := f.StreamShares(t.Context())
		require.NoError(t, err)
		return got
	}
	for range 2 { // The second time after a redelivery.
		require.NoError(t, f.RecordStreamShares(t.Context(), shares))
		require.Equal(t, shares, list())
	}
	require.NoError(t, f.DeleteStreamShares(t.Context(), 2, nil))
	require.Equal(t, shares[1:], list())
	require.NoError(t, f.DeleteStreamShares(t.Context(), 2, map[uuid.UUID]uint64{team: 4, other: 3}))
	require.Equal(t, shares[2:], list())

	require.NoError(t, f.ConfirmStream(t.Context(), "s", created))
	require.Len(t, list(), 2, "it is the same stream")
	require.NoError(t, f.ConfirmStream(t.Context(), "s", created.Add(time.Second)))
	require.Empty(t, list())
}
