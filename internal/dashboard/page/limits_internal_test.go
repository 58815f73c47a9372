package page

import (
	"sync"
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
		all, team, person, began := newTurns(), uuid.New(), uuid.New(), time.Now()
		for range teamPageBurst + 2*teamPageRate {
			held, err := all.take(t.Context(), team, person, true)
			require.NoError(t, err)
			held.Release()
		}
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.01)

		for range MaxTeamPages {
			held, err := all.take(t.Context(), team, person, false)
			require.NoError(t, err)
			defer held.Release()
		}
		refusal := func() *roomsensor.Error {
			_, err := all.take(t.Context(), team, person, false)
			var refused *roomsensor.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, roomsensor.CodeOverloaded, refused.Code)
			return refused
		}
		began = time.Now()
		require.Equal(t, "pages.team", refusal().Limit)
		require.Equal(t, RequestTimeout, time.Since(began))

		// Only some requests of a person wait: the others are refused at once.
		var waiting sync.WaitGroup
		for range maxPersonWaiting {
			waiting.Go(func() { _, _ = all.take(t.Context(), team, person, false) })
		}
		synctest.Wait()
		began = time.Now()
		require.Equal(t, "page_wait.key", refusal().Limit)
		require.Zero(t, time.Since(began))
		waiting.Wait()
	})
}
