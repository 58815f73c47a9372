package load_test

import (
	"context"
	"errors"
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
		_, err = load.Open(t.Context(), 1, time.Hour, refuse)
		require.ErrorIs(t, err, failed)
		require.Less(t, time.Since(began), time.Minute, "neither loop ran for its hour")
	})
}
