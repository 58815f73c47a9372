package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/load"
)

func wait(d time.Duration) load.Request {
	return func(context.Context, int, int) error {
		time.Sleep(d)
		return nil
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, err := load.Closed(t.Context(), 4, time.Second, wait(100*time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, 40, r.Requests)
		require.InDelta(t, 40, r.Rate(), 1e-9)
		require.Equal(t, 100*time.Millisecond, r.Quantile(0.99))
	})
}

func TestEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		times := make([]int, 10)
		r, err := load.Each(t.Context(), 4, len(times), func(_ context.Context, connection, k int) error {
			require.Less(t, connection, 4)
			times[k]++
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, times)
		require.Equal(t, 300*time.Millisecond, r.Elapsed, "of ten requests, some connections send three")
		require.Equal(t, 100*time.Millisecond, r.Quantile(1))
	})
}

// TestOpen has a server that does not answer for a while: the latency of all requests that are due meanwhile includes
// it.
func TestOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		paused := func(context.Context, int, int) error {
			time.Sleep(time.Until(began.Add(500 * time.Millisecond))) // No answer until then.
			return nil
		}
		r, err := load.Open(t.Context(), 100, time.Second, paused)
		require.NoError(t, err)
		require.Equal(t, 100, r.Requests)
		require.Equal(t, 500*time.Millisecond, r.Quantile(1), "the first one waited from the start")
		require.InDelta(t, 250*time.Millisecond, r.Quantile(0.75), float64(10*time.Millisecond))
		require.Zero(t, r.Quantile(0.25))
	})
}

func TestLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		do := load.Limited(2, func(ctx context.Context, connection, n int) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return wait(100*time.Millisecond)(ctx, connection, n)
		})
		r, err := load.Open(t.Context(), 40, time.Second, do)
		require.NoError(t, err)
		require.Equal(t, int32(2), most.Load())
		require.Equal(t, 40, r.Requests)
		require.Equal(t, 2025*time.Millisecond, r.Elapsed, "twenty each, of which the second begins when it is due")
		require.Equal(t, 1050*time.Millisecond, r.Quantile(1), "the last one was due after 975 ms")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		blocked := load.Limited(0, wait(0))
		require.ErrorIs(t, blocked(ctx, 0, 0), context.Canceled)
	})
}

func TestErrorEndsLoop(t *testing.T) {
	t.Parallel()
	failed := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		refuse := func(context.Context, int, int) error {
			time.Sleep(time.Second)
			if time.Since(began) > 3*time.Second {
				return failed
			}
			return nil
		}
		_, err := load.Closed(t.Context(), 1, time.Hour, refuse)
		require.ErrorIs(t, err, failed)
		_, err = load.Each(t.Context(), 1, 3600, refuse)
		require.ErrorIs(t, err, failed)
		_, err = load.Open(t.Context(), 1, time.Hour, refuse)
		require.ErrorIs(t, err, failed)
		require.Less(t, time.Since(began), time.Minute, "neither loop ran for its hour")
	})
}
