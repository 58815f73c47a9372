package process_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
)

// serve starts a server on a free port and returns its URL.
func serve(t *testing.T, h *process.Health, metrics prometheus.Gatherer) (base string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := process.NewOpsServer(h, metrics, nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
	return "http://" + l.Addr().String()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// TestLogLevel checks that PUT /log-level changes what a process logs from then on.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	level := process.NewLogLevel(config.Log{LogLevel: "info"})
	log := zerolog.New(&out).Sample(level)
	s := process.NewOpsServer(process.NewHealth(log), prometheus.NewRegistry(), level)
	put := func(text string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/log-level", strings.NewReader(text)))
		return w
	}
	debug := func() string {
		out.Reset()
		log.Debug().Msg("detail")
		return out.String()
	}
	require.Empty(t, debug())
	w := put("debug\n")
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"level":"debug"}`, w.Body.String())
	require.JSONEq(t, `{"from":"info","to":"debug","message":"changed the log level"}`, out.String())
	require.Contains(t, debug(), "detail")
	for _, wrong := range []string{"", "loud", "disabled", strings.Repeat("x", 100)} {
		require.Equal(t, http.StatusBadRequest, put(wrong).Code, wrong)
	}
	require.Contains(t, debug(), "detail")
	put("error")
	require.Empty(t, debug())
}

func TestOpsServer(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "roomsensor_test_total"})
	registry.MustRegister(counter)
	counter.Inc()
	base := serve(t, process.NewHealth(zerolog.Nop()), registry)

	tests := map[string]struct {
		status   int
		contains string
	}{
		"/livez":                         {200, `{"status":"alive"}`},
		"/readyz":                        {503, `{"status":"not_ready","missing":[{"name":"process","reason":"is starting"}],"checked":[]}`},
		"/metrics":                       {200, "roomsensor_test_total 1"},
		"/debug/pprof/":                  {200, "goroutine"},
		"/debug/pprof/cmdline":           {200, "test"},
		"/debug/pprof/heap":              {200, ""},
		"/debug/pprof/goroutine?debug=1": {200, "goroutine profile"},
		"/debug/pprof/symbol":            {200, "num_symbols"},
		"/v1/team":                       {404, ""},
	}
	for path, want := range tests {
		status, body := get(t, base+path)
		require.Equal(t, want.status, status, path)
		require.Contains(t, body, want.contains, path)
	}
}

func TestOpsServerReadyz(t *testing.T) {
	t.Parallel()
	h := process.NewHealth(zerolog.Nop())
	h.Need("database", func(context.Context) error { return nil })
	base := serve(t, h, prometheus.NewRegistry())
	h.Serving()
	status, body := get(t, base+"/readyz")
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"status":"not_ready","missing":[{"name":"database","reason":"was not checked yet"}],"checked":["database"]}`, body)
	ctx, cancel := context.WithCancel(t.Context())
	var probes sync.WaitGroup
	probes.Go(func() { h.Run(ctx) })
	defer probes.Wait()
	defer cancel()
	require.NoError(t, h.AwaitReady(t.Context()))
	status, body = get(t, base+"/readyz")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"status":"ready","missing":[],"checked":["database"]}`, body)
	h.Stopping()
	status, _ = get(t, base+"/readyz")
	require.Equal(t, 503, status)
}

func TestOpsServerShutdown(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := process.NewOpsServer(process.NewHealth(zerolog.Nop()), prometheus.NewRegistry(), nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET /debug/pprof/trace?seconds=60 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	first := make([]byte, 1)
	_, err = conn.Read(first) // The response has begun.
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Shutdown(ctx), context.Canceled)
	require.NoError(t, <-served)
}

// The kernel accepts connections for a process that hangs.
func TestHealthcheckHangs(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, err = process.Healthcheck(t.Context(), config.Ops{OpsAddr: l.Addr().String()})
	require.ErrorContains(t, err, "A process listens on "+l.Addr().String()+", but did not answer within 3s.")
	require.NoError(t, l.Close())
	_, err = process.Healthcheck(t.Context(), config.Ops{OpsAddr: l.Addr().String()})
	require.ErrorContains(t, err, "Nothing listens on "+l.Addr().String())
}
