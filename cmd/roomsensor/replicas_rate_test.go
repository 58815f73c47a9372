package main

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// hammer sends requests of a key to both replicas at once and returns how many passed.
func (f *fleet) hammer(key string, clients, each int) (passed int64) {
	f.t.Helper()
	var count atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for range each {
				got := f.replicas[i%2].get("/team", key)
				if got.status == http.StatusOK {
					count.Add(1)
				}
				if fault := rateHeaders(got); fault != "" {
					f.t.Errorf("%s: %d %v %v", fault, got.status, got.header, got.err)
				}
			}
		})
	}
	wg.Wait()
	return count.Load()
}

// rateHeaders says what is wrong with the headers of decision 25.
func rateHeaders(got answer) string {
	number := func(name string) int {
		n, err := strconv.Atoi(got.header.Get(name))
		if err != nil {
			return -1
		}
		return n
	}
	reset := number("RateLimit-Reset")
	switch {
	case number("RateLimit-Limit") != 600:
		return "RateLimit-Limit"
	case reset < 1 || reset > 600:
		return "RateLimit-Reset"
	case got.status == http.StatusOK && number("RateLimit-Remaining") >= 0:
		return ""
	case got.status == http.StatusTooManyRequests && number("Retry-After") == reset && number("RateLimit-Remaining") == 0:
		return ""
	}
	return "status, RateLimit-Remaining or Retry-After"
}

// Decision 25: the count is exact over processes, and survives their restart and their crash.
func TestReplicasShareTheRateLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.1", "decision 25.4", "decision 25.5", "decision 25.7", "spec 8, rate")
	f := launch(t)
	require.EqualValues(t, 600, f.hammer(f.key, 8, 150))
	require.Zero(t, f.hammer(f.key, 2, 5))

	require.NoError(t, f.replicas[0].Signal(syscall.SIGTERM))
	<-f.replicas[0].Done()
	f.replicas[1].Kill()
	for _, r := range f.replicas {
		r.start()
	}
	require.Zero(t, f.hammer(f.key, 2, 5), "the count is not in a process")
	_, other := f.newKey()
	require.EqualValues(t, 10, f.hammer(other, 2, 5), "keys do not share a count")

	f.exec(`UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes' WHERE key_id = $1`, f.keyID)
	require.Eventually(t, func() bool { return f.replicas[0].get("/team", f.key).status == http.StatusOK },
		bearable, pollEvery, "once they are older than that, requests pass again")
}
