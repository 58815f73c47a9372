package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
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
		f.Exec(t, "UPDATE rate_windows SET hit_at = hit_at - $1::interval", d)
	}
	// left returns the seconds until the oldest request leaves the window.
	left := func() (seconds float64) {
		require.NoError(t, f.SQL.QueryRow(t.Context(),
			"SELECT extract(epoch FROM min(hit_at) + INTERVAL '10 minutes' - clock_timestamp())::float8 FROM rate_windows").Scan(&seconds))
		return seconds
	}
	count()
	move(5 * time.Minute)
	for range roomsensor.RateLimit - 1 {
		count()
	}
	most, denied, least := left(), count(), left()
	require.False(t, denied.Allowed)
	require.Zero(t, denied.Remaining)
	require.LessOrEqual(t, denied.Reset.Seconds(), most)
	require.GreaterOrEqual(t, denied.Reset.Seconds(), least)

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
		require.NoError(t, f.SQL.QueryRow(t.Context(),
			"SELECT (pg_relation_size('rate_windows') + pg_relation_size('rate_counters')) / 8192").Scan(&n))
		return n
	}
	const key = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	round := func(requests int) {
		f.Exec(t, "UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes'")
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
	f.Exec(t, "DELETE FROM rate_windows")
	v, err := f.CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, roomsensor.RateVerdict{Allowed: true, Remaining: 599, Reset: 10 * time.Minute}, v)
}

// TestCountRequestConcurrent checks that concurrent requests of several keys each get their own verdict.
func TestCountRequestConcurrent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	stores := []*store.Store{f.Store, open(t, f.URL, store.API)}
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

// TestCountRequestReplicas checks that of many concurrent requests of one key, over several replicas, exactly 600 are
// allowed, and none by a replica that starts then.
func TestCountRequestReplicas(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25 a", "decision 25 d 1", "decision 25 d 2")
	f := setup(t)
	const replicas, each = 4, 800
	var allowed atomic.Int64
	var requests errgroup.Group
	for range replicas {
		s := open(t, f.URL, store.API)
		for range each {
			requests.Go(func() error {
				v, err := s.CountRequest(t.Context(), "key")
				if v.Allowed {
					allowed.Add(1)
				}
				return err
			})
		}
	}
	require.NoError(t, requests.Wait())
	require.EqualValues(t, roomsensor.RateLimit, allowed.Load())
	v, err := open(t, f.URL, store.API).CountRequest(t.Context(), "key")
	require.NoError(t, err)
	require.False(t, v.Allowed)
}

// TestCountRequestCanceled checks that a request that is canceled before it is counted neither counts nor delays the
// others.
func TestCountRequestCanceled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	var requests errgroup.Group
	for range 20 {
		requests.Go(func() error {
			if _, err := f.CountRequest(gone, "key"); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %w", err)
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
	require.Equal(t, roomsensor.RateLimit-21, v.Remaining)
}

// TestCountRequestClockBack checks that requests that are in the future, because the database's clock stepped back, do
// not count, and that those before them do.
func TestCountRequestClockBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, tc := range []struct {
		name         string
		past, future int
	}{
		{"all in the future", 0, 600},
		{"some in the future", 100, 500},
		{"all but one in the future", 1, 599},
	} {
		f.Exec(t, `INSERT INTO rate_counters SELECT $1, $2::integer + $3::integer, 0, now() + INTERVAL '1 hour'`, tc.name, tc.past, tc.future)
		f.Exec(t, `INSERT INTO rate_windows SELECT $1, n, now() + CASE WHEN n < $2 THEN INTERVAL '-1 minute' ELSE INTERVAL '1 hour' END
			FROM generate_series(0, $2::integer + $3::integer - 1) n`, tc.name, tc.past, tc.future)
		for left := roomsensor.RateLimit - tc.past - 1; left >= 0; left-- {
			v, err := f.CountRequest(t.Context(), tc.name)
			require.NoError(t, err)
			require.True(t, v.Allowed, tc.name)
			require.Equal(t, left, v.Remaining, tc.name)
			require.LessOrEqual(t, v.Reset, roomsensor.RateWindow)
		}
		v, err := f.CountRequest(t.Context(), tc.name)
		require.NoError(t, err)
		require.False(t, v.Allowed, tc.name)
	}
}

// TestPurgeRateWindows checks that the rows of idle keys are deleted, by one process at a time, and that a key of which
// a request is being counted is passed over.
func TestPurgeRateWindows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const idle = 45 // More than two statements delete.
	f.Exec(t, `INSERT INTO rate_counters SELECT 'idle ' || i, 3, 0, now() - INTERVAL '601 seconds' FROM generate_series(1, $1) i`, idle)
	f.Exec(t, `INSERT INTO rate_counters VALUES ('recent', 3, 0, now() - INTERVAL '300 seconds')`)
	f.Exec(t, `INSERT INTO rate_windows SELECT key_id, slot, last_hit_at FROM rate_counters, generate_series(0, 2) slot`)
	purge := func() int64 {
		keys, err := f.PurgeRateWindows(t.Context())
		require.NoError(t, err)
		return keys
	}
	whileHeld := func(sql string) (keys int64) {
		tx, err := f.SQL.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), sql)
		require.NoError(t, err)
		keys = purge()
		require.NoError(t, tx.Rollback(t.Context()))
		return keys
	}
	require.Zero(t, whileHeld(`SELECT pg_advisory_xact_lock(lock_key('rate_window_purge'))`), "another process deletes")
	require.EqualValues(t, idle-1, whileHeld(`SELECT FROM rate_counters WHERE key_id = 'idle 1' FOR UPDATE`))
	require.EqualValues(t, 1, purge())
	require.Zero(t, purge())
	var left []string
	require.NoError(t, f.SQL.QueryRow(t.Context(),
		`SELECT array_agg(DISTINCT key_id) FROM (SELECT key_id FROM rate_counters UNION ALL SELECT key_id FROM rate_windows) k`).Scan(&left))
	require.Equal(t, []string{"recent"}, left)
	v, err := f.CountRequest(t.Context(), "idle 1")
	require.NoError(t, err)
	require.Equal(t, roomsensor.RateLimit-1, v.Remaining)
}
