package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Decision 8.
func TestRequestIDIsOnEveryResponse(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8.1", "decision 8.2")
	conformance.Covers(t, "spec 4, request id", "spec 7, error.request_id")
	f := setup(t)
	seen := map[string]bool{}
	etag := f.get(t, "/team").header.Get("ETag")
	for name, got := range map[string]response{
		"success":       f.get(t, "/team"),
		"not modified":  f.get(t, "/team", header("If-None-Match", etag)),
		"unauthorized":  f.get(t, "/team", withoutKey),
		"bad parameter": f.get(t, "/team?x=1"),
		"csv":           f.get(t, "/readings.csv"),
		"head":          f.do(t, http.MethodHead, "/devices", ""),
		"unknown route": f.get(t, "/nothing"),
		"wrong method":  f.do(t, http.MethodDelete, "/team", ""),
		"docs":          f.replica.do(t, http.MethodGet, "/docs", ""),
		"no docs page":  f.replica.do(t, http.MethodGet, "/docs/none", ""),
		"root":          f.replica.do(t, http.MethodGet, "/", ""),
	} {
		id := got.header.Get("X-Request-Id")
		require.Regexp(t, `^req_[a-z2-7]{26}$`, id, name)
		require.False(t, seen[id], name)
		seen[id] = true
	}
	sent := f.get(t, "/team", header("X-Request-Id", "mine"))
	require.NotEqual(t, "mine", sent.header.Get("X-Request-Id"), "it is never taken from the client")
}

// Decision 22: route and method look at no key and count nowhere.
func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22.1")
	conformance.Covers(t, "decision 34.3")
	conformance.Covers(t, "spec 9, rule 1")
	f := setup(t)
	device := "/v1/devices/" + deviceID.String()
	for _, path := range []string{
		"/v1", "/v1/", "/v2/team", "/team", "/v1/teams", "/v1/team/", "/v1//team", "//v1/team", "/v1/devices/",
		"/v1/devices/current/", device + "/", device + "/none", "/v1/devices//readings", "/v1/readings",
		"/v1/readings.csv/", "/%2fv1/team", "/v1/team%2f", "/v1/./team", "/v1/%00", "/v1/%ff",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodOptions, "BREW"} {
			got := f.replica.do(t, method, path, "")
			require.Equal(t, http.StatusNotFound, got.status, "%s %s", method, path)
			got.requireError(t, roomsensor.CodeNotFound, "")
			require.Empty(t, got.header.Get("RateLimit-Limit"))
		}
	}
	for path, allow := range map[string]string{
		"/v1/team": "GET, HEAD", "/v1/devices": "GET, HEAD", "/v1/devices/current": "GET, HEAD",
		device: "GET, HEAD, PATCH", device + "/assignments": "GET, HEAD", device + "/readings": "GET, HEAD",
		"/v1/readings.csv": "GET, HEAD", "/docs": "GET, HEAD", "/docs/none": "GET, HEAD", "/": "GET, HEAD",
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "echo_route_not_found"} {
			if strings.Contains(allow, method) {
				continue
			}
			got := f.replica.do(t, method, path, "")
			require.Equal(t, http.StatusMethodNotAllowed, got.status, "%s %s", method, path)
			got.requireError(t, roomsensor.CodeMethodNotAllowed, "")
			require.Equal(t, allow, got.header.Get("Allow"))
			require.Empty(t, got.header.Get("RateLimit-Limit"))
		}
	}
	require.Equal(t, "600", f.get(t, "/team").header.Get("RateLimit-Limit"))
	require.Equal(t, "598", f.get(t, "/team").header.Get("RateLimit-Remaining"))
}

func TestPercentEncodingDoesNotMatter(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.Equal(t, http.StatusOK, f.get(t, "/%74eam").status)
	require.Equal(t, http.StatusOK, f.get(t, "/devices/%64"+deviceID.String()[1:]).status)
	f.get(t, "/devices/a%2Fb").requireError(t, roomsensor.CodeValidationFailed, "device_id")
	f.get(t, "/devices/%2f").requireError(t, roomsensor.CodeValidationFailed, "device_id")
	f.get(t, "/devices/%00").requireError(t, roomsensor.CodeValidationFailed, "device_id")
	f.get(t, "/devices/%ff").requireError(t, roomsensor.CodeValidationFailed, "device_id")
}

// Decision 7.
func TestPathIDs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, GET /devices/{device_id}")
	f := setup(t)
	id := deviceID.String()
	for _, bad := range []string{
		"dev:1", "1", id[1:], id + "0", strings.ReplaceAll(id, "-", ""), "{" + id + "}", "urn:uuid:" + id,
		"current%20", strings.Repeat("x", 36), "+" + id[1:],
	} {
		for _, suffix := range []string{"", "/readings", "/assignments"} {
			f.get(t, "/devices/"+bad+suffix).requireError(t, roomsensor.CodeValidationFailed, "device_id")
		}
	}
	f.get(t, "/devices/current/readings").requireError(t, roomsensor.CodeValidationFailed, "device_id")
	upper := f.get(t, "/devices/"+strings.ToUpper(id))
	require.Equal(t, http.StatusOK, upper.status)
	require.Contains(t, string(upper.body), id, "printed in lower case")
}

// Decision 42.
func TestHeadAnswersAsGetWithoutBody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42.1", "decision 32.4")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-12*60*60*1e9), 100)
	id := deviceID.String()
	for _, path := range []string{
		"/team", "/devices", "/devices/current", "/devices/" + id, "/devices/" + id + "/assignments",
		"/devices/" + id + "/readings", "/readings.csv", "/readings.csv?shape=wide",
		"/devices/" + number(9, 9).String(), "/devices?limit=0", "/readings.csv?shape=tall", "/nothing",
	} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			get := f.get(t, path, header("Accept-Encoding", coding))
			head := f.do(t, http.MethodHead, path, "", header("Accept-Encoding", coding))
			require.Equal(t, get.status, head.status, path)
			require.Empty(t, head.body)
			for _, volatile := range []string{"X-Request-Id", "Ratelimit-Remaining", "Ratelimit-Reset", "Date"} {
				get.header.Del(volatile)
				head.header.Del(volatile)
			}
			require.Equal(t, get.header, head.header, path)
		}
	}
}

func TestOneLineARequest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-60*60*1e9), 7)
	got := f.get(t, "/devices/"+deviceID.String()+"/readings?last=24h")
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	require.Len(t, lines, 1)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	require.Equal(t, "/v1/devices/:device_id/readings", line["route"])
	require.Equal(t, "GET", line["method"])
	require.InDelta(t, 200, line["status"], 0)
	require.InDelta(t, 7, line["rows"], 0)
	require.InDelta(t, len(got.body), line["bytes"], 0)
	require.Contains(t, f.key, line["key_id"])
	require.Equal(t, got.header.Get("X-Request-Id"), line["request_id"])
	require.Contains(t, line, "duration_ms")
	require.NotContains(t, lines[0], deviceID.String())
}
