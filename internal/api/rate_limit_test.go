package api_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// countingLimiter counts how often the API asks the database about the rate.
type countingLimiter struct {
	api.Backend
	asked atomic.Int64
}

func (c *countingLimiter) CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error) {
	c.asked.Add(1)
	return c.Backend.CountRequest(ctx, keyID)
}

// spend makes n requests the counted ones of the read key; the oldest of them is that old. The database must have the
// clock of the fixture.
func (f *fixture) spend(t *testing.T, n int, oldest time.Duration) {
	t.Helper()
	hits := make([]time.Time, n)
	for i := range hits {
		hits[i] = f.clock.now().Add(time.Duration(i)*time.Microsecond - oldest)
	}
	f.fillWindow(t, f.readKey, hits)
}

// retryAfter returns the seconds of Retry-After.
func (r response) retryAfter(t *testing.T) int {
	t.Helper()
	r.requireError(t, roomsensor.CodeRateLimitExceeded, "")
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	require.NoError(t, err)
	require.Equal(t, r.header.Get("Retry-After"), r.header.Get("RateLimit-Reset"))
	require.Equal(t, "0", r.header.Get("RateLimit-Remaining"))
	return seconds
}

// Every authenticated request counts, whatever its response.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25 c", "decision 25 f", "decision 42 d", "spec 8, rate, endpoints", "spec 8, rate, shared")
	f := setup(t)
	etag := f.get(t, "/team").header.Get("ETag")
	const body = `{"metadata":{"a":"b"}}`
	for i, tc := range []struct {
		status             int
		method, path, body string
		options            []option
	}{
		{200, "GET", "/team", "", nil},
		{200, "HEAD", "/devices", "", nil},
		{200, "GET", "/readings.csv?shape=wide", "", nil},
		{200, "HEAD", "/readings.csv", "", nil},
		{200, "GET", "/readings.csv?key=" + f.key, "", []option{withoutKey}},
		{304, "GET", "/team", "", []option{header("If-None-Match", etag)}},
		{400, "GET", "/devices?form=1", "", nil},
		{400, "GET", "/devices/x", "", nil},
		{404, "GET", "/devices/" + unknownID, "", nil},
		{404, "GET", "/readings.csv?devices=" + unknownID, "", nil},
		{200, "PATCH", devicePath, body, []option{asJSON, idempotencyKey("k")}},
		{200, "PATCH", devicePath, body, []option{asJSON, idempotencyKey("k")}}, // A replay.
		{422, "PATCH", devicePath, `{"metadata":{"a":"c"}}`, []option{asJSON, idempotencyKey("k")}},
		{400, "PATCH", devicePath, `{}`, nil},
		{413, "PATCH", devicePath, strings.Repeat(" ", 64<<10+1), []option{asJSON}},
		{501, "PATCH", devicePath, `{"assignment":null}`, []option{asJSON}},
	} {
		got := f.do(t, tc.method, tc.path, tc.body, tc.options...)
		require.Equal(t, tc.status, got.status, "%s %s", tc.method, tc.path)
		require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
		require.Equal(t, strconv.Itoa(600-2-i), got.header.Get("RateLimit-Remaining"), "%s %s", tc.method, tc.path)
		require.Regexp(t, `^([1-9]|[1-9]\d|[1-5]\d\d|600)$`, got.header.Get("RateLimit-Reset"))
	}
	failed := f.serveFailing(t, databaseLost).get(t, "/team", f.readKey)
	require.Equal(t, http.StatusInternalServerError, failed.status)
	require.Equal(t, "599", failed.header.Get("RateLimit-Remaining"), "keys do not share a count")
	forbidden := f.patch(t, `{}`, withKey(f.readKey))
	forbidden.requireError(t, roomsensor.CodeInsufficientScope, "")
	require.Equal(t, "598", forbidden.header.Get("RateLimit-Remaining"))
}

func TestRateLimitExceeded(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25 a", "decision 25 b", "decision 25 c", "decision 25 f", "spec 8, rate, limit", "spec 8, rate, shared",
		"spec 8, rate, endpoints", "spec 8, rate, retry_after", "spec 7, rate_limit_exceeded")
	f := setupWithDatabaseClock(t)
	limiter := &countingLimiter{Backend: f.store}
	f.replica = f.serve(t, limiter, nil)

	// Requests that are not authenticated do not count.
	f.get(t, "/nothing", withKey(f.readKey)).requireError(t, roomsensor.CodeNotFound, "")
	f.do(t, http.MethodDelete, "/team", "", withKey(f.readKey)).requireError(t, roomsensor.CodeMethodNotAllowed, "")
	f.get(t, "/team", withKey(wrongSecret(f.readKey))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	require.Equal(t, "599", f.get(t, "/team", withKey(f.readKey)).header.Get("RateLimit-Remaining"))

	// The 600th request passes, the 601st does not, on no endpoint.
	f.spend(t, 599, 100*time.Second)
	require.Equal(t, "0", f.get(t, "/team", withKey(f.readKey)).requireOK(t).header.Get("RateLimit-Remaining"))
	before := limiter.asked.Load()
	denied := []response{f.patch(t, `{}`, withKey(f.readKey)), f.get(t, "/devices/dev:1", withKey(f.readKey))}
	for _, path := range readEndpoints() {
		denied = append(denied, f.get(t, path, withKey(f.readKey)))
	}
	for _, got := range denied {
		require.Equal(t, 500, got.retryAfter(t))
	}
	require.Equal(t, int64(1), limiter.asked.Load()-before, "denied requests ask the database once")
	f.get(t, "/team").requireOK(t)

	// A replica remembers a denial for less than 5 seconds, and the seconds of Retry-After count down meanwhile.
	conformance.Covers(t, "decision 43 c")
	f.advanceBoth(t, 3*time.Second)
	require.Equal(t, 497, f.get(t, "/team", withKey(f.readKey)).retryAfter(t))
	f.exec(t, `UPDATE rate_windows SET hit_at = hit_at - INTERVAL '700 seconds'`)
	f.advanceBoth(t, 2*time.Second)
	require.Equal(t, "599", f.get(t, "/team", withKey(f.readKey)).requireOK(t).header.Get("RateLimit-Remaining"),
		"denied requests do not count")
}
