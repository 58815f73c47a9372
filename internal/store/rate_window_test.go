package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

func TestCountRequestWindow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	count := func() roomsensor.RateVerdict {
		v, err := f.CountRequest(t.Context(), "key")
		require.NoError(t, err)
		return v
	}
	move := func(d time.Duration) {
		f.exec(t, "UPDATE rate_windows SET hit_at = hit_at - $1::interval", d)
	}
	count()
	move(5 * time.Minute)
	for range roomsensor.RateLimit - 1 {
		count()
	}
	denied := count()
	require.False(t, denied.Allowed)
	require.Zero(t, denied.Remaining)
	require.InDelta(t, (5 * time.Minute).Seconds(), denied.Reset.Seconds(), 30)

	move(denied.Reset) // After Retry-After exactly one request is allowed.
	require.True(t, count().Allowed)
	require.False(t, count().Allowed)

	move(10 * time.Minute)
	require.Equal(t, 599, count().Remaining)
}

// TestCountRequestRing checks that the limit holds after the ring of a key was filled more than once, and that the
// tables do not grow with each request.
func TestCountRequestRing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	pages := func() (n int) {
		require.NoError(t, f.sql.QueryRow(t.Context(),
			"SELECT (pg_relation_size('rate_windows') + pg_relation_size('rate_counters')) / 8192").Scan(&n))
		return n
	}
	const key = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	round := func(requests int) {
		f.exec(t, "UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes'")
		for left := roomsensor.RateLimit - 1; left >= roomsensor.RateLimit-requests; left-- {
			v, err := f.CountRequest(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, left, v.Remaining)
		}
	}
	round(roomsensor.RateLimit)
	round(100)
	round(roomsensor.RateLimit)
	round(roomsensor.RateLimit)
	require.Less(t, pages(), 200, "1,900 requests would otherwise take a page each")
	v, err := f.CountRequest(t.Context(), key)
	require.NoError(t, err)
	require.False(t, v.Allowed)
}

// TestCountRequestDeletedRows checks that rows that were deleted with SQL count as requests that left the window.
func TestCountRequestDeletedRows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 3 {
		_, err := f.CountRequest(t.Context(), "key")
		require.NoError(t, err)
	}
	f.exec(t, "DELETE FROM rate_windows")
	v, err := f.CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, roomsensor.RateVerdict{Allowed: true, Remaining: 599, Reset: 10 * time.Minute}, v)
}

// TestCountRequestConcurrent checks that concurrent requests of several keys each get their own verdict.
func TestCountRequestConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	stores := []*store.Store{f.Store, open(t, f.url, store.API)}
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching("[a-zé]{1,3}"), 1, 80).Draw(rt, "keys")
		prefix := uuid.NewString()
		verdicts := make([]roomsensor.RateVerdict, len(keys))
		var requests errgroup.Group
		for i, key := range keys {
			requests.Go(func() (err error) {
				verdicts[i], err = stores[i%2].CountRequest(t.Context(), prefix+key)
				return err
			})
		}
		require.NoError(rt, requests.Wait())
		positions, counted := map[string][]int{}, map[string]int{}
		for i, v := range verdicts {
			require.True(rt, v.Allowed)
			require.InDelta(rt, 600, v.Reset.Seconds(), 30)
			positions[keys[i]] = append(positions[keys[i]], roomsensor.RateLimit-1-v.Remaining)
			counted[keys[i]]++
		}
		for key, n := range counted {
			slices.Sort(positions[key])
			want := make([]int, n)
			for i := range want {
				want[i] = i
			}
			require.Equal(rt, want, positions[key], key)
		}
	})
}

// TestCountRequestCanceled checks that a request that is canceled before it is counted does not delay the others.
func TestCountRequestCanceled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	var requests errgroup.Group
	for range 20 {
		requests.Go(func() error {
			if _, err := f.CountRequest(gone, "key"); !errors.Is(err, context.Canceled) {
				return err // It may have been counted before the cancellation was noticed.
			}
			return nil
		})
		requests.Go(func() error {
			_, err := f.CountRequest(t.Context(), "key")
			return err
		})
	}
	require.NoError(t, requests.Wait())
	v, err := f.CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, roomsensor.RateLimit-41, v.Remaining)
}
