package receiver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// requireLimited checks that an error is a 429 and returns its Retry-After in seconds.
func requireLimited(t *testing.T, err error) int {
	t.Helper()
	public := httpedge.PublicError(err)
	require.Equal(t, roomsensor.CodeRateLimitExceeded, public.Code, "%v", err)
	return int(public.RetryAfter / time.Second)
}

func TestRates(t *testing.T) {
	t.Parallel()
	team := uuid.New()
	a, b, c := &roomsensor.Key{ID: "a", TeamID: team}, &roomsensor.Key{ID: "b", TeamID: team}, &roomsensor.Key{ID: "c", TeamID: team}
	other := &roomsensor.Key{ID: "d", TeamID: uuid.New()}
	// passed returns how many requests of a key pass now.
	passed := func(r *rates, key *roomsensor.Key) (n int) {
		for r.admit(key) == nil {
			n++
		}
		return n
	}

	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 53 a 1", "decision 53 a 2")
		synctest.Test(t, func(t *testing.T) {
			r := newRates(DefaultRequestsPerSecond, DefaultBytesPerSecond)
			require.Equal(t, 500, passed(r, a))
			require.Equal(t, 500, passed(r, b))
			require.Zero(t, passed(r, c), "the team has sent twice the share of a credential")
			require.Equal(t, 500, passed(r, other))
			time.Sleep(time.Second)
			require.Equal(t, 50, passed(r, a), "the requests that were refused did not count")
			require.Equal(t, 50, passed(r, c))
			require.Zero(t, passed(r, b))
			time.Sleep(time.Hour)
			require.Equal(t, 500, passed(r, a))
		})
	})

	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 53 a 3")
		synctest.Test(t, func(t *testing.T) {
			r := newRates(DefaultRequestsPerSecond, 1<<20)
			require.NoError(t, r.charge(a, 10<<20))
			require.NoError(t, r.admit(a), "it owes nothing")
			require.NoError(t, r.charge(a, MaxBody))
			require.Equal(t, 16, requireLimited(t, r.admit(a)))
			require.Equal(t, 16, requireLimited(t, r.charge(a, 1)), "of a request that was admitted before")
			require.Equal(t, 3, requireLimited(t, r.admit(b)), "the team owes 6 MiB and gets 2 MiB a second")
			require.NoError(t, r.admit(other))
			time.Sleep(3 * time.Second)
			require.NoError(t, r.admit(b))
			time.Sleep(12*time.Second + 999*time.Millisecond)
			require.Equal(t, 1, requireLimited(t, r.admit(a)))
			time.Sleep(time.Millisecond)
			require.NoError(t, r.admit(a))
		})
	})

	t.Run("forgets who is idle", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRates(DefaultRequestsPerSecond, DefaultBytesPerSecond)
			require.Equal(t, 500, passed(r, a))
			for i := range 100 * minSweep {
				time.Sleep(time.Millisecond)
				require.NoError(t, r.admit(&roomsensor.Key{ID: fmt.Sprintf("device %d", i), TeamID: uuid.UUID{byte(i), byte(i >> 8), byte(i >> 16)}}))
			}
			require.LessOrEqual(t, len(r.buckets), minSweep)
		})
	})
}

// frozenRates returns limits whose clock stands still: on a busy machine, the shares would fill up again between two
// requests of a test.
func frozenRates(requestsPerSecond int, bytesPerSecond int64) *rates {
	r, at := newRates(requestsPerSecond, bytesPerSecond), time.Now()
	r.now = func() time.Time { return at }
	return r
}

// A request above the share of its credential is refused before its body is read.
func TestUploadsRateLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 a 4", "decision 53 a 5")
	configured := New(Config{Keys: &keyStore{}, RequestsPerSecond: 3, BytesPerSecond: 4, Metrics: prometheus.NewRegistry()})
	require.Equal(t, 3.0, configured.rates.requests)
	require.Equal(t, 4.0, configured.rates.bytes)

	g := newTestServer(t)
	_, other := g.keys.add(uuid.New(), false)
	g.receiver.rates = frozenRates(1, 1)
	for range burstSeconds {
		g.post(t, "").requireCode(t, 400, roomsensor.CodeValidationFailed) // It counts.
	}
	a := g.post(t, small)
	a.requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Empty(t, g.inStream(t))
	a = g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status)

	g.receiver.rates = frozenRates(DefaultRequestsPerSecond, 1<<20)
	g.post(t, gzipped(t, strings.Repeat(" ", MaxBody)), "Content-Encoding", "gzip").requireCode(t, 400, roomsensor.CodeValidationFailed)
	g.post(t, small).requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
}
