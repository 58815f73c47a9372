package abuse

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/harness"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	bucket := time.Date(2026, time.November, 22, 8, 0, 0, 0, time.UTC)
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{uploads: map[string][]visible{}}
		took := make(chan time.Duration)
		go func() { took <- w.wait(t.Context(), "dev:1", bucket) }()
		synctest.Wait()
		w.show("dev:2", bucket)
		w.show("dev:1", bucket.Add(-time.Minute))
		time.Sleep(2 * time.Second)
		w.show("dev:1", bucket)
		require.Equal(t, 2*time.Second, <-took)
		require.Equal(t, visibleTimeout, w.wait(t.Context(), "dev:1", bucket), "it is never shown")
		ended, stop := context.WithCancel(t.Context())
		stop()
		require.Zero(t, w.wait(ended, "dev:1", bucket), "the end of the trial is no delay")
	})
}

// A 503 is a failure, unless the slice is patient and the request succeeds after the pause.
func TestTenant(t *testing.T) {
	t.Parallel()
	refusals := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refusals--; refusals >= 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	c := &tenant{env: &env{api: &harness.Process{Address: server.Listener.Addr().String()}, team: &team{keys: []string{"k"}}}, client: server.Client()}
	s := newSlice(false)
	c.readTeam(t.Context(), s, 0)
	require.Equal(t, map[string]int{"/v1/team: status 503": 1}, s.failures)

	refusals = 1
	s = newSlice(true)
	c.readTeam(t.Context(), s, 0)
	require.Empty(t, s.failures)
	require.Equal(t, []int{1, 1, 1}, []int{s.requests, s.refused, len(s.took[reads])})

	s = newSlice(true)
	server.Close()
	c.readTeam(t.Context(), s, 0)
	require.Equal(t, map[string]int{"/v1/team: connection refused": 1}, s.failures)
}

func TestSlices(t *testing.T) {
	t.Parallel()
	c := newTenant(&env{})
	first := c.slice
	require.Same(t, first, c.next(true))
	require.True(t, c.slice.patient)
	require.NotSame(t, first, c.slice)
}
