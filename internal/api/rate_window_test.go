package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

const rateWindow = 10 * time.Minute

// window is the model of one key's window, beside two replicas that share it.
type window struct {
	*fixture
	t        *testing.T
	rt       *rapid.T // fails with what was drawn
	replicas [2]*replica
	key      string
	passed   []time.Time // ascending
	requests int
}

// newWindow makes a key, some of whose requests passed already.
func (f *fixture) newWindow(t *testing.T, rt *rapid.T, replicas [2]*replica) *window {
	t.Helper()
	ages := drawAges(rt)
	w := &window{fixture: f, t: t, rt: rt, replicas: replicas, passed: []time.Time{}}
	w.key = f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	for _, age := range ages {
		w.passed = append(w.passed, f.clock.now().Add(-age))
	}
	slices.SortFunc(w.passed, time.Time.Compare)
	f.fillWindow(t, w.key, w.passed)
	return w
}

// counted are those that are not ten minutes old yet.
func (w *window) counted() []time.Time {
	limit := w.clock.now().Add(-rateWindow)
	first := slices.IndexFunc(w.passed, limit.Before)
	if first < 0 {
		return nil
	}
	return w.passed[first:]
}

// request sends a request and holds the answer to the model.
func (w *window) request() (allowed bool, retryAfter time.Duration) {
	w.rt.Helper()
	replica := w.replicas[w.requests%2]
	w.requests++
	got := replica.do(w.t, http.MethodGet, "/v1/team", "", withKey(w.key))
	if allowed = len(w.counted()) < roomsensor.RateLimit; allowed {
		w.passed = append(w.passed, w.clock.now())
	}
	counted := w.counted()
	reset := counted[0].Add(rateWindow).Sub(w.clock.now())
	retryAfter = (reset + time.Second - 1).Truncate(time.Second)
	seconds := strconv.Itoa(int(retryAfter.Seconds()))
	require.Equal(w.rt, "600", got.header.Get("RateLimit-Limit"))
	require.Equal(w.rt, strconv.Itoa(roomsensor.RateLimit-len(counted)), got.header.Get("RateLimit-Remaining"))
	require.Equal(w.rt, seconds, got.header.Get("RateLimit-Reset"))
	if allowed {
		require.Equal(w.rt, http.StatusOK, got.status)
		require.Empty(w.rt, got.header.Get("Retry-After"))
	} else {
		got.requireError(w.t, roomsensor.CodeRateLimitExceeded, "")
		require.Equal(w.rt, seconds, got.header.Get("Retry-After"))
	}
	return allowed, retryAfter
}

// obey waits as long as a denial says: a second earlier it is too early still.
func (w *window) obey(retryAfter time.Duration) {
	w.rt.Helper()
	w.pass(w.t, retryAfter-time.Second)
	allowed, rest := w.request()
	require.False(w.rt, allowed)
	require.Equal(w.rt, time.Second, rest)
	w.pass(w.t, time.Second)
	allowed, _ = w.request()
	require.True(w.rt, allowed)
}

// drawAges makes bursts within the last ten minutes, of 600 requests at most
// and as a rule nearly as many.
func drawAges(t *rapid.T) []time.Duration {
	left := roomsensor.RateLimit - rapid.SampledFrom([]int{0, 0, 1, 2, 300, 600}).Draw(t, "free")
	var ages []time.Duration
	for left > 0 {
		n := min(left, rapid.SampledFrom([]int{1, 2, 100, 600}).Draw(t, "burst"))
		age := drawWait(t, "age")
		for range n {
			ages = append(ages, min(age, rateWindow-time.Microsecond))
		}
		left -= n
	}
	return ages
}

// drawWait is a time to the microsecond, near a whole second or not.
func drawWait(t *rapid.T, name string) time.Duration {
	whole := time.Duration(rapid.IntRange(0, 600).Draw(t, name)) * time.Second
	part := rapid.SampledFrom([]int{0, 0, 1, 400_000, 999_999}).Draw(t, name+" microseconds")
	return whole + time.Duration(part)*time.Microsecond
}

// Decision 25: in any ten minutes at most 600 pass, over all replicas, and a
// denial says exactly when the next one does.
func TestTheWindowSlides(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.1", "decision 25.2", "decision 25.4", "decision 25.7", "spec 8, rate", "spec 8, rate, Retry-After", "spec 7, code rate_limit_exceeded")
	conformance.Covers(t, "decision 25.1", "decision 25.2")
	f := setupStill(t)
	replicas := [2]*replica{f.replica, f.serve(t, backend{f.store}, nil)}
	rapid.Check(t, func(rt *rapid.T) {
		w := f.newWindow(t, rt, replicas)
		for range rapid.IntRange(1, 4).Draw(rt, "bursts") {
			for range rapid.IntRange(1, 3).Draw(rt, "requests") {
				if allowed, retryAfter := w.request(); !allowed && rapid.Bool().Draw(rt, "obey") {
					w.obey(retryAfter)
				}
			}
			f.pass(t, drawWait(rt, "wait"))
		}
		for i := roomsensor.RateLimit; i < len(w.passed); i++ {
			require.GreaterOrEqual(rt, w.passed[i].Sub(w.passed[i-roomsensor.RateLimit]), rateWindow)
		}
	})
}
