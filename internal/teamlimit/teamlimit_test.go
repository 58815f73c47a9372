package teamlimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, id := New(2), uuid.New()
		acquire := func(id uuid.UUID) func() {
			release, err := l.Acquire(t.Context(), id)
			require.NoError(t, err)
			return release
		}
		first, second := acquire(id), acquire(id)
		acquire(uuid.New())() // Another team does not wait.

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Acquire(ctx, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		third := make(chan func())
		go func() { third <- acquire(id) }()
		synctest.Wait()
		first()
		(<-third)()
		second()
		require.Zero(t, l.Teams(), "a team that does nothing takes no memory")
	})
}
