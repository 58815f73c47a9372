package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/retry"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, retry.Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, retry.Sleep(ctx, time.Minute), context.DeadlineExceeded)
		require.ErrorIs(t, retry.Sleep(ctx, 0), context.DeadlineExceeded, "ctx has ended already")
	})
}

func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		calls := 0
		retry.Every(ctx, time.Second, func(context.Context) { calls++ })
		require.Equal(t, 3, calls, "at 0, 1 and 2 seconds")
	})
}

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, failed := 0, errors.New("failed")
		after := func(n int, err error) func(context.Context) (bool, error) {
			calls = 0
			return func(context.Context) (bool, error) {
				calls++
				return calls == n && err == nil, map[bool]error{true: err}[calls == n]
			}
		}
		require.NoError(t, retry.Until(t.Context(), time.Second, after(3, nil)))
		require.Equal(t, 3, calls)
		require.ErrorIs(t, retry.Until(t.Context(), time.Second, after(2, failed)), failed)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, retry.Until(ctx, time.Second, after(9, nil)), context.DeadlineExceeded)
		require.Equal(t, 2, calls)
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := retry.Backoff{First: time.Second, Max: 10 * time.Second}
	for attempt, longest := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 4: 10 * time.Second, 99: 10 * time.Second,
	} {
		for range 100 {
			delay := b.Delay(attempt)
			require.LessOrEqual(t, delay, longest, "attempt %d", attempt)
			require.GreaterOrEqual(t, delay, longest/2, "attempt %d", attempt)
		}
	}
}
