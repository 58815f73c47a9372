package api_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// asJSON is the header of a PATCH.
var asJSON = header("Content-Type", "application/json")

// requests are of every kind of answer to who is authenticated.
func (f *fixture) requests(t *testing.T) []func() response {
	t.Helper()
	device := "/devices/" + deviceID.String()
	once := header("Idempotency-Key", "k")
	etag := f.get(t, "/team").header.Get("ETag")
	send := func(status int, method, path, body string, options ...option) func() response {
		return func() response {
			got := f.do(t, method, path, body, options...)
			require.Equal(t, status, got.status, "%s %s", method, path)
			return got
		}
	}
	return []func() response{
		send(200, "GET", "/team", ""),
		send(200, "HEAD", "/devices", ""),
		send(200, "GET", "/readings.csv?shape=wide", ""),
		send(200, "HEAD", "/readings.csv", ""),
		send(200, "GET", "/readings.csv?key="+f.key, "", withoutKey),
		send(304, "GET", "/team", "", header("If-None-Match", etag)),
		send(400, "GET", "/devices?form=1", ""),
		send(400, "GET", "/devices/x", ""),
		send(404, "GET", "/devices/"+number(9, 9).String(), ""),
		send(404, "GET", "/readings.csv?devices="+number(9, 9).String(), ""),
		send(200, "PATCH", device, `{"metadata":{"a":"b"}}`, asJSON, once),
		send(200, "PATCH", device, `{"metadata":{"a":"b"}}`, asJSON, once), // A replay.
		send(422, "PATCH", device, `{"metadata":{"a":"c"}}`, asJSON, once),
		send(400, "PATCH", device, `{}`),
		send(413, "PATCH", device, strings.Repeat(" ", 64<<10+1), asJSON),
		send(501, "PATCH", device, `{"assignment":null}`, asJSON),
	}
}

// Whatever the answer is, the request is counted, and the headers say so.
func TestEveryAuthenticatedRequestCounts(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.3", "decision 25.7", "decision 42.4")
	f := setup(t)
	requests := f.requests(t)
	for i, request := range requests {
		got := request()
		require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
		require.Equal(t, strconv.Itoa(600-2-i), got.header.Get("RateLimit-Remaining"), "%s %s", got.request.Method, got.request.URL.Path)
		require.Regexp(t, `^([1-9]|[1-9]\d|[1-5]\d\d|600)$`, got.header.Get("RateLimit-Reset"))
	}
	broken := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return errDatabaseLost }}, nil)
	for i, want := range []int{500, 403} {
		got := broken.do(t, "GET", "/v1/team", "", withKey(f.key))
		if want == 403 {
			got = f.patch(t, `{}`, withKey(f.readKey))
		}
		require.Equal(t, want, got.status)
		remaining := map[int]int{500: 600 - 2 - len(requests), 403: 599}[want]
		require.Equal(t, strconv.Itoa(remaining), got.header.Get("RateLimit-Remaining"), i)
	}
}

// What was answered without a look at the key, or 429, counts nowhere.
func TestOthersDoNotCount(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.3", "decision 25.7")
	f := setup(t)
	f.get(t, "/nothing").requireError(t, roomsensor.CodeNotFound, "")
	f.do(t, http.MethodDelete, "/team", "").requireError(t, roomsensor.CodeMethodNotAllowed, "")
	f.get(t, "/team", withKey(wrongSecret(f.key))).requireError(t, roomsensor.CodeAPIKeyInvalid, "")
	require.Equal(t, "599", f.get(t, "/team").header.Get("RateLimit-Remaining"))

	f.spend(t, 600, 500*time.Second)
	for range 5 {
		got := f.get(t, "/readings.csv", withKey(f.readKey))
		got.requireError(t, roomsensor.CodeRateLimitExceeded, "")
		require.Regexp(t, `^(100|\d\d)$`, got.header.Get("Retry-After"))
		require.Equal(t, got.header.Get("Retry-After"), got.header.Get("RateLimit-Reset"))
		require.Equal(t, []string{"600", "0"}, []string{got.header.Get("RateLimit-Limit"), got.header.Get("RateLimit-Remaining")})
		f.clock.advance(5 * time.Second) // So that the database is asked each time.
	}
	// As if those that passed lay further back; a trace of the denied would stay.
	f.exec(t, `UPDATE rate_windows SET hit_at = hit_at - INTERVAL '200 seconds'`)
	require.Equal(t, "599", f.get(t, "/team", withKey(f.readKey)).header.Get("RateLimit-Remaining"), "denied requests leave no trace")
}

// A replica that ends takes nothing along: the next one goes on counting.
func TestCountSurvivesARestart(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 25.4", "decision 25.5")
	f := setup(t)
	for left := 599; left > 590; left-- {
		replica := f.serve(t, backend{f.store}, nil)
		got := replica.do(t, http.MethodGet, "/v1/team", "", withKey(f.key))
		require.Equal(t, strconv.Itoa(left), got.header.Get("RateLimit-Remaining"))
		replica.server.Close()
	}
}
