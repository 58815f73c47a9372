package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// telling is what no answer may show: of SQL, of a stack, of a library.
var telling = regexp.MustCompile(`(?i)\b(select|insert|update .* set|sqlstate|relation|column|constraint|syntax error|postgres\w*|pgx\w*|pq|` +
	`timescale\w*|goroutine|panic|runtime|\w+\.go|echo|strconv|json:|jsontext|unmarshal|unexpected|eof|net/http|uuid:|` +
	`parsing|parseint|invalid character|localhost|context|deadline|dial|tcp|broken pipe)\b`)

// requireReticent holds an answer to decision 36.
func requireReticent(t *testing.T, got response) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	var said strings.Builder
	require.NoError(t, got.header.Write(&said))
	_, _ = said.Write(bytes.ReplaceAll(got.body, []byte(docsURL), nil))
	require.NotRegexp(t, telling, said.String())
	require.NotRegexp(t, `\b`+regexp.QuoteMeta(host)+`\b`, said.String())
	require.Empty(t, got.header.Get("Server"))
}

// What is malformed in every place where a library reads it.
func TestMalformedRequestsAreAnsweredInOwnWords(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36", "decision 34.1", "decision 34.5")
	f := setup(t)
	device := "/devices/" + deviceID.String()
	for _, path := range []string{
		"/devices/'%20OR%201=1--", "/devices/%00", "/devices/" + strings.Repeat("z", 36), device + "/readings?from=0000-00-00T00:00:00Z",
		device + "/readings?last=99999999999999999999d", device + "/readings?last=1e3d", device + "/readings?cursor=%ff",
		device + "/readings?cursor=AAAA", device + "/readings?limit=99999999999999999999", "/devices?limit=0x10",
		"/devices?metadata.%00=x&limit=0", "/readings.csv?devices=%27;DROP", "/readings.csv?shape=%00", "/readings.csv?assignment_id={}",
		"/devices?%zz", "/devices?a;b", "/%ff", "/devices/..%2f..%2fetc", "/docs/..%2f..%2fgo.mod", "/docs/none",
	} {
		got := f.get(t, path)
		require.GreaterOrEqual(t, got.status, 400, path)
		require.Less(t, got.status, 500, path)
		requireReticent(t, got)
	}
	for _, body := range []string{
		"", "{", "null", "[]", "{}", `{"display_name":}`, `{"display_name":1e999}`, "{\"display_name\":\"\xff\"}", `{"display_name":"\ud800"}`,
		`{"display_name":"\u0000"}`, `{"display_name":["x"]}`, `{"metadata":{"a":1}}`, `{"metadata":{"a":{"b":"c"}}}`, `{"metadata":[1]}`,
		`{"a":1,"a":2}`, `{"display_name":"x"} {}`, strings.Repeat("[", 20_000), `{"metadata":` + strings.Repeat(`{"a":`, 11_000),
		`{"metadata":{"` + strings.Repeat("k", 65) + `":"v"}}`, `{"metadata":{"k":"` + strings.Repeat("v", 501) + `"}}`,
	} {
		got := f.patch(t, body)
		require.Equal(t, http.StatusBadRequest, got.status, body)
		requireReticent(t, got)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer rsk_\xff_", "Content-Type": "application/json; charset=\x80", "Idempotency-Key": "\xff", "Content-Encoding": "gzip",
	} {
		got := f.patch(t, `{}`, func(r *http.Request) { r.Header[name] = []string{value} })
		require.GreaterOrEqual(t, got.status, 400, name)
		requireReticent(t, got)
	}
}

// A real database that lacks what is asked of it, table by table.
func TestFailuresOfTheDatabaseAreToldToNobody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36", "decision 34.5")
	f := setup(t)
	device := "/devices/" + deviceID.String()
	for table, paths := range map[string][]string{
		"api_keys": {"/team"}, "rate_windows": {"/team"}, "rate_counters": {"/team"}, "teams": {"/team"}, "assignments": {"/devices", "/devices/current", device + "/assignments"},
		"devices": {"/devices", device, "/readings.csv"}, "readings": {device + "/readings", "/readings.csv", "/readings.csv?shape=wide"},
		"idempotency_keys": {"PATCH"},
	} {
		f.exec(t, fmt.Sprintf("ALTER TABLE %s RENAME TO gone", table))
		f.clock.advance(5e9) // So that no key is remembered.
		for _, path := range paths {
			var got response
			if path == "PATCH" {
				got = f.patch(t, `{"metadata":{}}`, header("Idempotency-Key", "k"))
			} else {
				got = f.get(t, path)
			}
			got.requireError(t, roomsensor.CodeInternalError, "")
			requireReticent(t, got)
			require.Regexp(t, telling, f.log.String(), "the log has the cause")
		}
		f.exec(t, fmt.Sprintf("ALTER TABLE gone RENAME TO %s", table))
	}
}

// An error of the driver that carries everything it may.
func TestTextsOfLibrariesAreToldToNobody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36")
	f := setup(t)
	for _, cause := range []error{
		&pgconn.PgError{Code: "57P01", Message: "terminating connection at postgres.internal", Detail: "SELECT secret", File: "x.go"},
		&pgconn.PgError{Code: "42P01", Message: `relation "teams" does not exist`},
		fmt.Errorf("dial tcp: lookup database.internal: %w", context.DeadlineExceeded),
	} {
		replica := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return cause }}, nil)
		got := replica.do(t, http.MethodGet, "/v1/team", "", withKey(f.key))
		require.GreaterOrEqual(t, got.status, 500)
		requireReticent(t, got)
		require.NotContains(t, string(got.body), "internal:")
	}
}
