package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played is a process that a test plays: it says its name, and whether it is ready.
func played(t *testing.T, name string) (b *backend, ready *atomic.Bool) {
	t.Helper()
	ready = &atomic.Bool{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(service.Close)
	ops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(ops.Close)
	return &backend{
		member: &container{member: name}, address: strings.TrimPrefix(service.URL, "http://"),
		ops: strings.TrimPrefix(ops.URL, "http://"),
	}, ready
}

func balanced(t *testing.T, backends ...*backend) *balancer {
	t.Helper()
	b, err := startBalancer(t.Context(), backends)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close(context.Background())) })
	return b
}

// answer asks over a connection of its own; empty is no answer.
func answer(t *testing.T, b *balancer) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + b.address)
	if err != nil {
		return ""
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// seen is who answers ten questions.
func seen(t *testing.T, b *balancer) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range 10 {
		names[answer(t, b)]++
	}
	return names
}

func TestBalancerTakesTurnsAmongThoseThatAreReady(t *testing.T) {
	t.Parallel()
	first, firstReady := played(t, "first")
	second, secondReady := played(t, "second")
	b := balanced(t, first, second)
	require.Equal(t, map[string]int{"first": 5, "second": 5}, seen(t, b), "none is ready: better any than none")
	firstReady.Store(true)
	require.Eventually(t, func() bool { return seen(t, b)["first"] == 10 }, time.Minute, 10*time.Millisecond)
	secondReady.Store(true)
	require.Eventually(t, func() bool { return seen(t, b)["second"] == 5 }, time.Minute, 10*time.Millisecond)
}

func TestBalancerPassesOverTheDead(t *testing.T) {
	t.Parallel()
	alive, _ := played(t, "alive")
	dead, deadReady := played(t, "dead")
	deadReady.Store(true)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	dead.address = gone.Addr().String()
	require.Equal(t, map[string]int{"alive": 10}, seen(t, balanced(t, dead, alive)))
	buried, _ := played(t, "buried")
	buried.address = dead.address
	require.Equal(t, map[string]int{"": 10}, seen(t, balanced(t, buried)))
}

// TestBalancerEndsNothingInOrder has a process die in the middle of its answer.
func TestBalancerEndsNothingInOrder(t *testing.T) {
	t.Parallel()
	begun, die := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "first line")
		w.(http.Flusher).Flush()
		close(begun)
		<-die
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	back, _ := played(t, "victim")
	back.address = strings.TrimPrefix(server.URL, "http://")
	b := balanced(t, back)
	a := &archive{}
	e, err := a.open(t.Context(), b.address)
	require.NoError(t, err)
	t.Cleanup(e.close)
	<-begun
	require.Same(t, back, b.who(e.client))
	close(die)
	_, err = e.rows()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Eventually(t, func() bool { return b.who(e.client) == nil }, time.Minute, time.Millisecond)
}
