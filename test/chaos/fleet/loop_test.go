package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/retry"
)

// TestLoopLate checks that requests behind a slow one are sent late, all of them, and that their time counts from when
// they were due.
func TestLoopLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests, due := evenly(10, time.Second)
		require.Equal(t, 10, requests)
		var took []time.Duration
		start := time.Now()
		err := loop(t.Context(), 1, requests, start, due, func(ctx context.Context, n int, due time.Time) {
			if n == 0 {
				require.NoError(t, retry.Sleep(ctx, 250*time.Millisecond))
			}
			took = append(took, time.Since(due))
		})
		require.NoError(t, err)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{250 * ms, 150 * ms, 50 * ms, 0, 0, 0, 0, 0, 0, 0}, took)
		require.Equal(t, 900*ms, time.Since(start))
	})
}

func TestLoopCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, due := evenly(1, time.Hour)
	err := loop(ctx, 2, 3600, time.Now(), due, func(context.Context, int, time.Time) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
}
