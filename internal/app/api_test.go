package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/openapitest"
	"roomsensor/schema"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// journal is a log that tests read while a process writes it.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// running is a process of a test.
type running struct {
	t     *testing.T
	log   *journal
	bound chan string // addresses, in the order in which they were opened
	ready chan struct{}
	stop  context.CancelFunc
	ended chan error
}

// start runs a process on free ports; it ends with the test at the latest.
func start(t *testing.T, run func(context.Context, app.Process) error) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{
		t: t, log: &journal{}, stop: stop,
		bound: make(chan string, 4), ready: make(chan struct{}), ended: make(chan error, 1),
	}
	p := app.Process{
		Log: zerolog.New(r.log), Version: "test",
		Started: func(name string, bound net.Addr) { r.bound <- name + " " + bound.String() },
		Ready:   func() { close(r.ready) },
	}
	go func() { r.ended <- run(ctx, p) }()
	t.Cleanup(stop)
	return r
}

// address waits for a listener of a name.
func (r *running) address(name string) string {
	r.t.Helper()
	select {
	case bound := <-r.bound:
		require.Contains(r.t, bound, name+" ")
		return "http://" + bound[len(name)+1:]
	case err := <-r.ended:
		require.FailNow(r.t, "the process ended", "%v\n%s", err, r.log)
	case <-time.After(patience):
		require.FailNow(r.t, "nothing listens", r.log.String())
	}
	return ""
}

func (r *running) awaitReady() {
	r.t.Helper()
	select {
	case <-r.ready:
	case err := <-r.ended:
		require.FailNow(r.t, "the process ended", "%v\n%s", err, r.log)
	case <-time.After(patience):
		require.FailNow(r.t, "the process is not ready", r.log.String())
	}
}

func (r *running) end() error {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		require.FailNow(r.t, "the process does not end", r.log.String())
		return nil
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: openapitest.Transport(transport)}).Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func apiConfig(url string) config.API {
	return config.API{
		Database: config.Database{DatabaseURL: url}, Log: config.Log{LogLevel: "info"},
		Site: config.Site{APIAddr: "127.0.0.1:0"}, OpsAddr: "127.0.0.1:0",
	}
}

func startAPI(t *testing.T, cfg config.API) *running {
	t.Helper()
	return start(t, func(ctx context.Context, p app.Process) error { return app.RunAPI(ctx, cfg, p) })
}

func TestAPIServesAndEndsInOrder(t *testing.T) {
	t.Parallel()
	r := startAPI(t, apiConfig(dbtest.New(t).URL))
	ops, api := r.address("ops"), r.address("api")
	r.awaitReady()

	status, body := get(t, ops+"/readyz")
	require.Equal(t, 200, status, body)
	status, body = get(t, api+"/v1/team")
	require.Equal(t, 401, status)
	require.Contains(t, body, `"doc_url":"`+api+`/docs/errors/api_key_missing"`)
	for _, path := range []string{"/docs", "/docs/errors/api_key_missing", "/docs/openapi.yaml", "/docs/openapi.json"} {
		status, _ = get(t, api+path)
		require.Equal(t, 200, status, path)
	}
	status, body = get(t, ops+"/metrics")
	require.Equal(t, 200, status)
	require.Contains(t, body, `roomsensor_api_requests_total{method="GET",route="/v1/team",status="401"} 1`)
	require.Contains(t, body, "go_goroutines")
	for _, path := range []string{"/readyz", "/metrics", "/debug/pprof/"} {
		status, _ = get(t, api+path)
		require.Equal(t, 404, status, "operations stay off the public listener: %s", path)
	}

	require.NoError(t, r.end())
	require.Contains(t, r.log.String(), `"edition":"`+dbtest.Edition(t)+`"`)
	require.Contains(t, r.log.String(), `"timescaledb":"2.`)
	require.Contains(t, r.log.String(), `"version":"test"`)
	require.Contains(t, r.log.String(), `"message":"stopped"`)
	require.NotContains(t, r.log.String(), `"level":"warn"`)
}

func TestAPIWaitsForMigrations(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).URL
	r := startAPI(t, apiConfig(url))
	ops := r.address("ops")
	require.Eventually(t, func() bool {
		status, body := get(t, ops+"/readyz")
		require.Equal(t, 503, status)
		return json.Valid([]byte(body)) && strings.Contains(body, "run roomsensor migrate up")
	}, patience, 20*time.Millisecond)
	require.Contains(t, r.log.String(), "run roomsensor migrate up")
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	r.awaitReady()
	r.address("api")
	require.NoError(t, r.end())
}

func TestAPIWaitsForAnAddressThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	line := newLine(t, dbtest.New(t).URL)
	line.Cut()
	r := startAPI(t, apiConfig(line.URL))
	ops := r.address("ops")
	require.Eventually(t, func() bool {
		_, body := get(t, ops+"/readyz")
		return strings.Contains(body, `{"name":"database","reason":"does not answer"}`)
	}, patience, 20*time.Millisecond)
	status, _ := get(t, ops+"/livez")
	require.Equal(t, 200, status)

	line.Mend()
	r.awaitReady()
	api := r.address("api")

	lost := time.Now()
	line.Cut()
	require.Eventually(t, func() bool {
		status, _ := get(t, ops+"/readyz")
		return status == 503
	}, 20*time.Second, 50*time.Millisecond)
	t.Logf("noticed after %s", time.Since(lost))
	status, _ = get(t, api+"/docs")
	require.Equal(t, 200, status, "what needs no database goes on")

	line.Mend()
	require.Eventually(t, func() bool {
		status, _ := get(t, ops+"/readyz")
		return status == 200
	}, patience, 50*time.Millisecond)
	require.NoError(t, r.end())
}

func TestAPIEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	r := startAPI(t, apiConfig("postgres://user:secret@127.0.0.1:1/x"))
	r.address("ops")
	require.NoError(t, r.end())
	require.NotContains(t, r.log.String(), `"database_url":"postgres://user:secret@`)
}

func TestAPIRefusesABadStart(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	bad := apiConfig(database.URL)
	bad.APIAddr = "nowhere"
	var problem *config.ValueError
	require.ErrorAs(t, app.RunAPI(t.Context(), bad, app.Process{}), &problem)
	require.Equal(t, "api-addr", problem.Flag)
	require.ErrorAs(t, app.RunAPI(t.Context(), apiConfig(database.With("pool_max_conns", "x")), app.Process{}), &problem)
	require.Equal(t, "database-url", problem.Flag)

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	inUse := apiConfig(database.URL)
	inUse.OpsAddr = taken.Addr().String()
	require.ErrorContains(t, app.RunAPI(t.Context(), inUse, app.Process{}), "listening on "+inUse.OpsAddr+" for ops")
	inUse = apiConfig(database.URL)
	inUse.APIAddr = taken.Addr().String()
	require.ErrorContains(t, app.RunAPI(t.Context(), inUse, app.Process{}), "listening on "+inUse.APIAddr+" for api")
}

// Replicas share the secret that signs cursors, also when all start at once.
func TestReplicasStartAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	var replicas []*running
	for range 3 {
		replicas = append(replicas, startAPI(t, apiConfig(url)))
	}
	for _, r := range replicas {
		r.awaitReady()
	}
	var group errgroup.Group
	for _, r := range replicas {
		group.Go(r.end)
	}
	require.NoError(t, group.Wait())
}
