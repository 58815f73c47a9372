package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// The check of route and method ignores the key and counts no request (decision 22 c).
func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22 c", "decision 34 c", "spec 9, rule 1")
	f := setup(t)
	for _, path := range []string{
		"/v1", "/v1/", "/v2/team", "/team", "/v1/teams", "/v1/team/", "/v1//team", "//v1/team", "/v1/devices/",
		"/v1/devices/current/", "/v1" + devicePath + "/", "/v1" + devicePath + "/none", "/v1/devices//readings", "/v1/readings",
		"/v1/readings.csv/", "/%2fv1/team", "/v1/team%2f", "/v1/./team", "/v1/%00", "/v1/%ff",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodOptions, "BREW"} {
			got := f.replica.do(t, method, path, "")
			got.requireError(t, roomsensor.CodeNotFound, "")
			require.Empty(t, got.header.Get("RateLimit-Limit"), "%s %s", method, path)
		}
	}
	for path, allow := range map[string]string{
		"/v1/team": "GET, HEAD", "/v1/devices": "GET, HEAD", "/v1/devices/current": "GET, HEAD",
		"/v1" + devicePath: "GET, HEAD, PATCH", "/v1" + assignmentsPath: "GET, HEAD", "/v1" + readingsPath: "GET, HEAD",
		"/v1/assignments": "GET, HEAD", "/v1/nights": "GET, HEAD", "/v1/nights.csv": "GET, HEAD", "/v1/coverage": "GET, HEAD", "/v1" + gapsPath: "GET, HEAD",
		"/v1/readings.csv": "GET, HEAD", "/v1/readings.parquet": "GET, HEAD",
		"/v1/readings/changes": "GET, HEAD", "/docs": "GET, HEAD", "/docs/none": "GET, HEAD", "/": "GET, HEAD",
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "echo_route_not_found"} {
			if strings.Contains(allow, method) {
				continue
			}
			got := f.replica.do(t, method, path, "")
			got.requireError(t, roomsensor.CodeMethodNotAllowed, "")
			require.Equal(t, allow, got.header.Get("Allow"), "%s %s", method, path)
			require.Empty(t, got.header.Get("RateLimit-Limit"))
		}
	}
	require.Equal(t, "599", f.get(t, "/team").header.Get("RateLimit-Remaining"))
}

// TestUselessBody checks that a body that a request must not have is refused like any bad input, after the key.
func TestUselessBody(t *testing.T) {
	t.Parallel()
	f := setup(t)
	body := strings.Repeat(" ", 2000)
	f.do(t, http.MethodGet, "/team", body).requireError(t, roomsensor.CodeValidationFailed, "")
	f.replica.do(t, http.MethodGet, "/v1/team", body, withKey("none")).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
}

// TestSecurityHeaders checks that a browser takes no response for a page, whatever its status.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for path, key := range map[string]string{
		"/v1/team": f.key, "/v1/readings.csv?last=1h": f.key, "/v1/none": f.key, "/v1/devices": "none",
	} {
		got := f.replica.do(t, http.MethodGet, path, "", withKey(key))
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
			got.header.Get("Content-Security-Policy"), path)
		require.Contains(t, got.header.Get("Content-Type"), "; charset=utf-8", path)
		require.Contains(t, []string{"private, no-cache", "no-store"}, got.header.Get("Cache-Control"), path)
	}
}

// The specification has no endpoints for OAuth, keys and events.
func TestUnsupportedEndpoints(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sentence, paths := range map[string][]string{
		"spec 5, rule 7": {"/oauth", "/oauth/token", "/oauth/authorize", "/token", "/login", "/../.well-known/oauth-authorization-server"},
		"spec 5, rule 8": {"/keys", "/api_keys", "/api-keys", "/team/keys", "/team/api_key", "/team/api_key/rotate"},
		"spec 6, none": {
			"/events", "/webhooks", "/notifications", "/subscriptions", "/stream", "/ws", devicePath + "/events", readingsPath + "/stream",
		},
	} {
		conformance.Covers(t, sentence)
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				f.do(t, method, path, `{}`).requireError(t, roomsensor.CodeNotFound, "")
			}
		}
	}
	events := f.get(t, "/devices/current", header("Accept", "text/event-stream"))
	require.Equal(t, "application/json; charset=utf-8", events.header.Get("Content-Type"))
}

func TestOnlyPatchChangesData(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, changes", "spec 1, assignment_changes", "spec 3, assignment, transitions")
	f := setup(t)
	f.fillDevice(t)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	before := f.visibleData(t)
	for _, path := range append(readEndpoints(), assignmentsPath+"/"+testID(0xa5, 2).String(), "/assignments") {
		path, _, _ := strings.Cut(path, "?")
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"} {
			got := f.do(t, method, path, `{"assignment":{"ended_at":"2026-11-20T10:00:00Z"}}`, asJSON)
			if method == "PATCH" && path == devicePath {
				got.requireError(t, roomsensor.CodeNotImplemented, "assignment")
			} else if method != "GET" && method != "HEAD" {
				require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, got.status, "%s %s", method, path)
			}
		}
	}
	require.Equal(t, before, f.visibleData(t))
	f.patch(t, `{"display_name":"New","metadata":{"a":"1"}}`).requireOK(t)
	require.NotEqual(t, before, f.visibleData(t))
}

// visibleData returns the contents of the tables that a client can read, as text.
func (f *fixture) visibleData(t *testing.T) (text string) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `SELECT concat(
		(SELECT string_agg(t::text, E'\n' ORDER BY t::text) FROM teams t),
		(SELECT string_agg(d::text, E'\n' ORDER BY d::text) FROM devices d),
		(SELECT string_agg(a::text, E'\n' ORDER BY a::text) FROM assignments a),
		(SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM readings r))`).Scan(&text))
	return text
}

func TestDocs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.Equal(t, "the docs", string(f.replica.do(t, http.MethodGet, "/docs", "").body))
	for path, address := range map[string]string{
		"/": "docs", "/openapi.json": "docs/openapi.json", "/openapi.yaml": "docs/openapi.yaml",
	} {
		got := f.replica.do(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusFound, got.status, path)
		require.Equal(t, address, got.header.Get("Location"), "relative, for proxies that serve the API below a path")
	}
	_, err := api.New(api.Config{CursorSecret: []byte("short"), Docs: docsStub}, f.store)
	require.Error(t, err)
}

func TestLogLine(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 7)
	got := f.get(t, readingsPath+"?last=24h")
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	require.Len(t, lines, 1)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	require.Equal(t, "/v1/devices/:device_id/readings", line["route"])
	require.Equal(t, "GET", line["method"])
	require.InDelta(t, 200, line["status"], 0)
	require.InDelta(t, 7, line["rows"], 0)
	require.InDelta(t, len(got.body), line["bytes"], 0)
	require.Equal(t, keyID(f.key), line["key_id"])
	require.Equal(t, got.header.Get("X-Request-Id"), line["request_id"])
	require.Contains(t, line, "duration_ms")
	require.NotContains(t, lines[0], deviceID.String())
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := setup(t)
	registry := prometheus.NewRegistry()
	f.replica = f.serve(t, f.store, func(cfg *api.Config) { cfg.Metrics = registry })
	f.get(t, devicePath)
	f.get(t, "/devices/"+unknownID)
	f.get(t, "/nothing")
	f.do(t, "BREW", "/team", "")
	families, err := registry.Gather()
	require.NoError(t, err)
	var requests []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "roomsensor_api_requests_total" {
				requests = append(requests, fmt.Sprint(m.GetLabel(), m.GetCounter().GetValue()))
			}
		}
	}
	slices.Sort(requests)
	require.Len(t, requests, 4)
	for i, want := range []string{
		`"code" +value:"" .*/v1/devices/:device_id.*200.* 1$`, "device_not_found.*/v1/devices/:device_id.*404.* 1$",
		"method_not_allowed.*other.*/v1/team.*405.* 1$", "not_found.*unmatched.*404.* 1$",
	} {
		require.Regexp(t, want, requests[i])
	}
	_, err = api.New(api.Config{CursorSecret: make([]byte, 32), Docs: docsStub, Metrics: registry}, f.store)
	require.ErrorContains(t, err, "metrics")
}

// The log of net/http shows neither queries nor keys.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	server := api.NewServer(http.NotFoundHandler(), zerolog.New(&out))
	server.ErrorLog.Println("http: odd request GET /v1/readings.csv?a=b&key=rsk_id_secret HTTP/1.1")
	server.ErrorLog.Println("http: odd key=secret and rsk_id_secret and rsi_id_secret")
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), "odd request GET /v1/readings.csv")
}
