package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBackend answers with its name, and as ready or not.
func fakeBackend(t *testing.T, name string) (b *backend, ready *atomic.Bool) {
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

func start(t *testing.T, backends ...*backend) *balancer {
	t.Helper()
	b, err := startBalancer(t.Context(), backends)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close(context.Background())) })
	return b
}

// get sends a request on a new connection. It returns the body, or the empty string if there is no answer.
func get(t *testing.T, b *balancer) string {
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

// getTen counts the answers to ten requests.
func getTen(t *testing.T, b *balancer) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range 10 {
		names[get(t, b)]++
	}
	return names
}

func TestBalancerPrefersReady(t *testing.T) {
	t.Parallel()
	first, firstReady := fakeBackend(t, "first")
	second, secondReady := fakeBackend(t, "second")
	b := start(t, first, second)
	require.Equal(t, map[string]int{"first": 5, "second": 5}, getTen(t, b), "no backend is ready")
	firstReady.Store(true)
	require.Eventually(t, func() bool { return getTen(t, b)["first"] == 10 }, time.Minute, 10*time.Millisecond)
	secondReady.Store(true)
	require.Eventually(t, func() bool { return getTen(t, b)["second"] == 5 }, time.Minute, 10*time.Millisecond)
}

func TestBalancerSkipsDead(t *testing.T) {
	t.Parallel()
	alive, _ := fakeBackend(t, "alive")
	dead, deadReady := fakeBackend(t, "dead")
	deadReady.Store(true)
	dead.address = proctest.Address(t)
	require.Equal(t, map[string]int{"alive": 10}, getTen(t, start(t, dead, alive)))
	alsoDead, _ := fakeBackend(t, "alsoDead")
	alsoDead.address = dead.address
	require.Equal(t, map[string]int{"": 10}, getTen(t, start(t, alsoDead)))
}

// TestBalancerBreaksConnection has a process die in the middle of its answer.
func TestBalancerBreaksConnection(t *testing.T) {
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
	back, _ := fakeBackend(t, "victim")
	back.address = strings.TrimPrefix(server.URL, "http://")
	b := start(t, back)
	a := &archive{key: "key"}
	export, err := a.open(t.Context(), b.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = export.Close() })
	<-begun
	require.Same(t, back, b.backendOf(export.Header))
	close(die)
	_, err = countRows(export)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
