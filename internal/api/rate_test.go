package api_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// countingLimiter counts how often the database is asked.
type countingLimiter struct {
	api.Backend
	asked atomic.Int64
}

func (c *countingLimiter) CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	c.asked.Add(1)
	return c.Backend.CountRequest(ctx, keyID)
}

// spend makes the window of the read key hold n requests, the oldest of them
// some time ago.
func (f *fixture) spend(t *testing.T, n int, oldest time.Duration) {
	t.Helper()
	hits := make([]time.Time, n)
	for i := range hits {
		hits[i] = time.Now().Add(time.Duration(i)*time.Microsecond - oldest)
	}
	f.fillWindow(t, f.readKey, hits)
}

// fillWindow makes requests of a key that passed, in ascending order, the only
// ones that did.
func (f *fixture) fillWindow(t *testing.T, key string, hits []time.Time) {
	t.Helper()
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, key)
	f.exec(t, `INSERT INTO rate_windows (key_id, slot, hit_at) SELECT $1, n - 1, at FROM unnest($2::timestamptz[]) WITH ORDINALITY h (at, n)
		ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at`, id, hits)
	f.exec(t, `INSERT INTO rate_counters (key_id, passed, over) VALUES ($1, $2, 0)
		ON CONFLICT (key_id) DO UPDATE SET passed = excluded.passed, over = 0`, id, len(hits))
}

// Decision 25.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.7", "decision 42.4")
	conformance.Covers(t, "spec 8, rate, endpoints", "spec 8, rate, shared")
	f := setup(t)
	for i, path := range []string{"/team", "/devices/x", "/readings.csv?shape=tall", "/devices"} {
		got := f.get(t, path, withKey(f.readKey))
		require.Equal(t, "600", got.header.Get("RateLimit-Limit"), path)
		require.Equal(t, strconv.Itoa(599-i), got.header.Get("RateLimit-Remaining"), path)
		require.Regexp(t, `^(600|599|598)$`, got.header.Get("RateLimit-Reset"), path)
	}
	etag := f.get(t, "/team", withKey(f.readKey)).header.Get("ETag")
	unchanged := f.get(t, "/team", withKey(f.readKey), header("If-None-Match", etag))
	require.Equal(t, http.StatusNotModified, unchanged.status)
	require.Equal(t, "594", unchanged.header.Get("RateLimit-Remaining"), "a 304 counts as a request")
	require.Equal(t, "599", f.get(t, "/team").header.Get("RateLimit-Remaining"), "keys do not share a count")
}

func TestRequest601IsDenied(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.1", "decision 25.2")
	conformance.Covers(t, "spec 8, rate", "spec 8, rate, shared", "spec 8, rate, Retry-After",
		"spec 7, code rate_limit_exceeded")
	f := setup(t)
	limiter := &countingLimiter{Backend: backend{f.store}}
	f.replica = f.serve(t, limiter, nil)
	f.spend(t, 599, 100*time.Second)
	last := f.get(t, "/team", withKey(f.readKey))
	require.Equal(t, http.StatusOK, last.status)
	require.Equal(t, "0", last.header.Get("RateLimit-Remaining"))
	for range 20 {
		denied := f.get(t, "/team", withKey(f.readKey))
		denied.requireError(t, roomsensor.CodeRateLimitExceeded, "")
		require.Equal(t, "0", denied.header.Get("RateLimit-Remaining"))
		require.Equal(t, denied.header.Get("RateLimit-Reset"), denied.header.Get("Retry-After"))
		wait, err := strconv.Atoi(denied.header.Get("Retry-After"))
		require.NoError(t, err)
		require.InDelta(t, 500, wait, 5)
	}
	require.Equal(t, int64(2), limiter.asked.Load(), "denied requests ask the database once")
	require.Equal(t, http.StatusOK, f.get(t, "/team").status, "another key passes")
}

// The seconds in Retry-After suffice, and what another tool does to the window
// is seen within 5 seconds (decision 43).
func TestDenialIsNotKeptForLong(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43.3")
	conformance.Covers(t, "spec 8, rate")
	f := setup(t)
	f.spend(t, 600, 100*time.Second)
	f.get(t, "/team", withKey(f.readKey)).requireError(t, roomsensor.CodeRateLimitExceeded, "")
	f.clock.advance(3 * time.Second)
	denied := f.get(t, "/team", withKey(f.readKey))
	denied.requireError(t, roomsensor.CodeRateLimitExceeded, "")
	wait, err := strconv.Atoi(denied.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 497, wait, 2, "it counts down from memory")
	f.spend(t, 600, 601*time.Second)
	f.clock.advance(2 * time.Second)
	require.Equal(t, http.StatusOK, f.get(t, "/team", withKey(f.readKey)).status)
}

func TestRateLimitOverTwoReplicas(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.1", "decision 25.4")
	f := setup(t)
	other := f.serve(t, backend{f.store}, nil)
	f.spend(t, 590, time.Second)
	const clients, each = 4, 10
	results := make(chan int, clients*each)
	for i := range clients {
		replica := f.replica
		if i%2 == 1 {
			replica = other
		}
		go func() {
			for range each {
				results <- replica.try(t.Context(), http.MethodGet, "/v1/team", "", withKey(f.readKey)).status
			}
		}()
	}
	passed := 0
	for range clients * each {
		if <-results == http.StatusOK {
			passed++
		}
	}
	require.Equal(t, 10, passed)
}
