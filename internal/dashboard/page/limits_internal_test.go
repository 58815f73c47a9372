package page

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// More requests than teamPageBurst wait for teamPageRate, and more pages than maxTeamPages for the end of others.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, team, began := newTurns(), uuid.New(), time.Now()
		for range teamPageBurst + 2*teamPageRate {
			held, err := all.take(t.Context(), team, true)
			require.NoError(t, err)
			held.Release()
		}
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.01)

		for range MaxTeamPages {
			held, err := all.take(t.Context(), team, false)
			require.NoError(t, err)
			defer held.Release()
		}
		ctx, cancel := context.WithTimeout(t.Context(), RequestTimeout)
		defer cancel()
		_, err := all.take(ctx, team, false)
		var refused *roomsensor.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, roomsensor.CodeOverloaded, refused.Code)
	})
}
