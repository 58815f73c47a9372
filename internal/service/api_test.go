package service_test

import (
	"encoding/json"
	"html"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

func TestAPIProcess(t *testing.T) {
	t.Parallel()
	r := startAPI(t, apiConfig(dbtest.New(t).As(t, schema.RoleAPI)))
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
	require.Contains(t, body, `roomsensor_api_requests_total{code="api_key_missing",method="GET",route="/v1/team",status="401"} 1`)
	require.Contains(t, body, "go_goroutines")
	for _, path := range []string{"/readyz", "/metrics", "/debug/pprof/"} {
		status, _ = get(t, api+path)
		require.Equal(t, 404, status, "the public listener must not serve %s", path)
	}

	r.awaitDatabase()
	require.NoError(t, r.end())
	require.Contains(t, r.log.String(), `"timescaledb":"2.`)
	require.Contains(t, r.log.String(), `"version":"test"`)
	require.Contains(t, r.log.String(), `"message":"stopped"`)
	require.Empty(t, r.warnings())
}

// TestAPIPurgesRateWindows checks that an API process deletes the counted requests of idle keys.
func TestAPIPurgesRateWindows(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	conn, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `INSERT INTO rate_counters VALUES ('idle', 0, 0, now() - INTERVAL '1 hour')`)
	require.NoError(t, err)
	r := startAPI(t, apiConfig(database.As(t, schema.RoleAPI)))
	require.Eventually(t, func() bool {
		var left int
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM rate_counters`).Scan(&left))
		return left == 0
	}, waitTimeout, 20*time.Millisecond)
	require.NoError(t, r.end())
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
	}, waitTimeout, 20*time.Millisecond)
	require.Contains(t, r.log.String(), "run roomsensor migrate up")
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
	r.awaitReady()
	r.address("api")
	require.NoError(t, r.end())
}

func TestAPIReadiness(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 34 d", "decision 34 e", "decision 36")
	e := newTestEnv(t)
	proxy := newProxy(t, e.database)
	proxy.Cut()
	r := startAPI(t, apiConfig(proxy.URL))
	ops := r.address("ops")
	awaitReadiness(t, ops, 503, `{"name":"database","reason":"does not answer at 127.0.0.1:`)
	status, _ := get(t, ops+"/livez")
	require.Equal(t, 200, status)

	proxy.Restore()
	r.awaitReady()
	api := r.address("api")
	getTeam := func() (int, http.Header) {
		response, _ := send(t, http.MethodGet, api+"/v1/team", "Authorization", "Bearer "+e.apiKey)
		return response.StatusCode, response.Header
	}
	status, _ = getTeam()
	require.Equal(t, 200, status)

	proxy.Cut()
	status, header := getTeam()
	require.Equal(t, 503, status)
	require.Regexp(t, `^[1-9]\d*$`, header.Get("Retry-After"))
	awaitReadiness(t, ops, 503, "database")
	status, _ = get(t, api+"/docs")
	require.Equal(t, 200, status, "it needs no database")

	proxy.Restore()
	awaitReadiness(t, ops, 200, "ready")
	require.Eventually(t, func() bool {
		status, _ := getTeam()
		return status == 200
	}, waitTimeout, 50*time.Millisecond)
	require.Contains(t, r.log.String(), "the database role is a superuser")
	require.NoError(t, r.end())
}

func TestAPIStopsWhileWaiting(t *testing.T) {
	t.Parallel()
	r := startAPI(t, apiConfig("postgres://user:secret@127.0.0.1:1/x"))
	r.address("ops")
	require.NoError(t, r.end())
	require.NotContains(t, r.log.String(), `"database_url":"postgres://user:secret@`)
}

func TestAPIStartErrors(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	bad := apiConfig(database.URL)
	bad.APIAddr = "nowhere"
	var problem *config.ValueError
	require.ErrorAs(t, service.RunAPI(t.Context(), bad, process.Options{}), &problem)
	require.Equal(t, "api-addr", problem.Flag)
	require.ErrorAs(t, service.RunAPI(t.Context(), apiConfig(database.With("pool_max_conns", "x")), process.Options{}), &problem)
	require.Equal(t, "database-url", problem.Flag)

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	inUse := apiConfig(database.URL)
	inUse.OpsAddr = taken.Addr().String()
	require.ErrorContains(t, service.RunAPI(t.Context(), inUse, process.Options{}), "listening on "+inUse.OpsAddr+" for ops")
	inUse = apiConfig(database.URL)
	inUse.APIAddr = taken.Addr().String()
	require.ErrorContains(t, service.RunAPI(t.Context(), inUse, process.Options{}), "listening on "+inUse.APIAddr+" for api")
}

// TestDashboardStartErrors checks that no dashboard runs without the list of passwords that it should refuse.
func TestDashboardStartErrors(t *testing.T) {
	t.Parallel()
	cfg := dashboardConfig("postgres://127.0.0.1/none")
	long := filepath.Join(t.TempDir(), "passwords.txt")
	require.NoError(t, os.WriteFile(long, []byte(strings.Repeat("x", 100_000)), 0o600))
	for _, cfg.PasswordList = range []string{"/none/passwords.txt", long} {
		var problem *config.ValueError
		require.ErrorAs(t, service.RunDashboard(t.Context(), cfg, process.Options{}), &problem)
		require.Equal(t, "password-list", problem.Flag)
	}
}

// TestAPIConcurrentStarts checks that replicas can create the cursor secret at the same time.
func TestAPIConcurrentStarts(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	var replicas []*runningProcess
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

// TestServedDocs checks that the doc_url of an error is the address of a page, that the served OpenAPI document shows the
// error that the API sends, and that the router passes HEAD and If-None-Match on. Package docs tests every page.
func TestServedDocs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 7, doc_url", "decision 34 b", "decision 35 a", "decision 35 b", "decision 42 a", "decision 42 b", "decision 42 c")
	r := startAPI(t, apiConfig(dbtest.New(t).URL))
	r.address("ops")
	api := r.address("api")
	r.awaitReady()
	docs := api + "/docs"
	for _, info := range roomsensor.Codes {
		status, page := get(t, docs+"/errors/"+string(info.Code))
		require.Equal(t, http.StatusOK, status, info.Code)
		require.Contains(t, html.UnescapeString(page), info.Fix)
	}
	status, _ := get(t, docs+"/errors/none")
	require.Equal(t, http.StatusNotFound, status)

	type envelope struct {
		Error map[string]any `json:"error"`
	}
	var document struct {
		Components struct {
			Examples map[string]struct {
				Value envelope `json:"value"`
			} `json:"examples"`
		} `json:"components"`
	}
	_, text := get(t, docs+"/openapi.json")
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	var sent envelope
	_, text = get(t, api+"/v1/team")
	require.NoError(t, json.Unmarshal([]byte(text), &sent))
	require.Equal(t, docs+"/errors/api_key_missing", sent.Error["doc_url"])
	delete(sent.Error, "request_id")
	require.Subset(t, document.Components.Examples["api_key_missing"].Value.Error, sent.Error)

	for _, path := range []string{"/", "/docs", "/docs/openapi.json", "/docs/errors/overloaded", "/docs/none", "/none"} {
		get, _ := send(t, http.MethodGet, api+path)
		head, body := send(t, http.MethodHead, api+path)
		require.Equal(t, get.StatusCode, head.StatusCode, path)
		require.Empty(t, body)
		for _, h := range []http.Header{get.Header, head.Header} {
			h.Del("Date")
			h.Del("X-Request-Id")
			h.Del("Content-Length") // HEAD may leave it out.
		}
		require.Equal(t, get.Header, head.Header, path)
		if tag := get.Header.Get("ETag"); path == "/docs/openapi.json" {
			require.Regexp(t, `^W/"[^"]+"$`, tag)
			unchanged, body := send(t, http.MethodGet, api+path, "If-None-Match", tag)
			require.Equal(t, http.StatusNotModified, unchanged.StatusCode)
			require.Empty(t, body)
		}
	}
	require.NoError(t, r.end())
}

// TestRequestID checks that each listener of each process, health checks included, sends a request id of its own and
// ignores that of the client.
func TestRequestID(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8 a", "decision 8 b 1", "decision 8 b 2", "spec 4, request_id", "spec 7, request_id")
	e := newTestEnv(t)
	api, ingest := startAPI(t, apiConfig(e.database)), startIngest(t, e.config())
	apiOps, public := api.address("ops"), api.address("api")
	ingestOps, receiver := ingest.address("ops"), ingest.address("receiver")
	notReady := startAPI(t, apiConfig(dbtest.Empty(t).URL)) // Never ready: no migrations.
	notReadyOps := notReady.address("ops")
	api.awaitReady()
	ingest.awaitReady()

	seen := map[string]bool{}
	for url, status := range map[string]int{
		apiOps + "/livez": 200, apiOps + "/readyz": 200, apiOps + "/metrics": 200, apiOps + "/none": 404,
		ingestOps + "/livez": 200, ingestOps + "/readyz": 200, notReadyOps + "/livez": 200, notReadyOps + "/readyz": 503,
		public + "/v1/team": 401, public + "/v1/none": 404, public + "/docs": 200, public + "/": 302, public + "/docs/none": 404,
		receiver + "/uploads": 405, receiver + "/none": 404,
	} {
		const sent = "req_aaaaaaaaaaaaaaaaaaaaaaaaaa"
		response, _ := send(t, http.MethodGet, url, "X-Request-Id", sent, "Request-Id", sent, "X-Correlation-Id", sent, "Traceparent", sent)
		require.Equal(t, status, response.StatusCode, url)
		ids := response.Header.Values("X-Request-Id")
		require.Len(t, ids, 1, url)
		require.Regexp(t, `^req_[a-z2-7]{26}$`, ids[0])
		require.NotEqual(t, sent, ids[0], url)
		require.False(t, seen[ids[0]], url)
		seen[ids[0]] = true
	}
	require.NoError(t, api.end())
	require.NoError(t, ingest.end())
	require.NoError(t, notReady.end())
}
