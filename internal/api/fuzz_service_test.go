package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// These targets feed what clients write to the whole API over a real database:
// whatever comes, the answer is one of the OpenAPI document's and no failure.

// fuzzed is a fixture with something of everything in it.
func fuzzed(f *testing.F) *fixture {
	f.Helper()
	s := setup(f)
	s.addDevice(f, teamID, number(0xde, 2), "dev:2")
	s.exec(f, `UPDATE devices SET metadata = '{"site":"north"}'`)
	s.addReadings(f, deviceID, start.Add(-10*time.Hour), 120)
	s.addAssignment(f, deviceID, number(0xa5, 1), start.Add(-5*time.Hour), nil)
	return s
}

// hit asks the handler, without a network between. The rate limit is lifted by
// letting time pass.
func (f *fixture) hit(t testing.TB, method, path string, query url.Values, body string) response {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "/v1"+path, strings.NewReader(body))
	request.URL.RawQuery = query.Encode()
	request.Header.Set("Authorization", "Bearer "+f.key)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	f.server.Config.Handler.ServeHTTP(recorder, request)
	got := response{request: request, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
	require.NoError(t, got.check())
	require.True(t, got.status < 500 || got.code() == roomsensor.CodeNotImplemented, "%d %s", got.status, f.log)
	if left, err := strconv.Atoi(got.header.Get("RateLimit-Remaining")); err == nil && left < 10 {
		f.exec(t, `UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes'`)
	}
	f.log.reset()
	return got
}

// only holds an answer to success or some codes.
func (f *fixture) only(t testing.TB, got response, codes ...roomsensor.Code) {
	t.Helper()
	if got.status != http.StatusOK {
		require.Contains(t, codes, got.code(), string(got.body))
	}
}

func FuzzCursorParameter(f *testing.F) {
	s := fuzzed(f)
	lists := []string{"/devices", "/devices/current", "/devices/" + deviceID.String() + "/assignments", readingsPath}
	for _, text := range []string{"", "A", "cursor", strings.Repeat("A", 300), "\xff\x00", "AfDDVwbVRfzagjvYv7zEs3LJgw28cUYs0k4q"} {
		f.Add(text, uint8(0))
	}
	for i, path := range []string{lists[0], lists[1], lists[3]} {
		page := decode[list[any]](f, s.hit(f, "GET", path, url.Values{"limit": {"1"}}, ""))
		f.Add(*page.NextCursor, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		got := s.hit(t, "GET", lists[int(which)%len(lists)], url.Values{"cursor": {text}}, "")
		s.only(t, got, roomsensor.CodeCursorInvalid)
	})
}

func FuzzTimestampParameter(f *testing.F) {
	s := fuzzed(f)
	for _, pair := range [][2]string{
		{"2026-11-20T00:00:00Z", "2026-11-20T10:00:00.123456789Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:01Z"},
		{"9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"},
		{"2026-02-30T00:00:00Z", "2026-11-20T10:00:00+00:00"},
		{"2024-02-29T23:59:60Z", "x"},
		{"", "2026-11-20"},
	} {
		f.Add(pair[0], pair[1], uint8(0))
	}
	f.Fuzz(func(t *testing.T, from, to string, which uint8) {
		q := url.Values{"from": {from}, "to": {to}}
		if which&1 != 0 {
			q.Del("from")
		}
		if which&2 != 0 {
			q.Del("to")
		}
		path := readingsPath
		if which&4 != 0 {
			path = "/readings.csv"
		}
		s.only(t, s.hit(t, "GET", path, q, ""), roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide)
	})
}

func FuzzLastParameter(f *testing.F) {
	s := fuzzed(f)
	for _, text := range []string{"24h", "90d", "91d", "0d", "-1h", "1.5h", "", "00000000000000000001m", "9223372036854775807d", "1h30m", "١h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, last string) {
		got := s.hit(t, "GET", readingsPath, url.Values{"last": {last}}, "")
		s.only(t, got, roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide)
	})
}

func FuzzMetadataFilter(f *testing.F) {
	s := fuzzed(f)
	for _, pair := range [][2]string{{"site", "north"}, {"", "x"}, {"a.b", ""}, {"\x00", "\x00"}, {"\xff", "é"}, {`"`, `\`}, {"$.site", "%"}} {
		f.Add(pair[0], pair[1], false)
	}
	f.Fuzz(func(t *testing.T, key, value string, current bool) {
		path := "/devices"
		if current {
			path = "/devices/current"
		}
		got := s.hit(t, "GET", path, url.Values{"metadata." + key: {value}}, "")
		s.only(t, got, roomsensor.CodeValidationFailed)
		found := key == "site" && value == "north"
		require.Equal(t, found, got.status == http.StatusOK && strings.Contains(string(got.body), deviceID.String()))
	})
}

func FuzzPatchBody(f *testing.F) {
	s := fuzzed(f)
	for _, body := range []string{
		`{"display_name":"x"}`, `{"display_name":null,"metadata":{"a":"b","c":null}}`, `{"metadata":null}`, `{"assignment":1}`, `{`,
		`{"display_name":"\ud800"}`, "{\"metadata\":{\"a\":\"\xff\"}}", `{"metadata":{"a":"\u0000"}}`, `{"metadata":{"a":1,"a":2}}`,
		`{"display_name":"=\u200f🏠"} {}`, `{"metadata":{"0":"0","1":"1"}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		path := "/devices/" + deviceID.String()
		got := s.hit(t, "PATCH", path, nil, body)
		s.only(t, got, roomsensor.CodeValidationFailed, roomsensor.CodeNotImplemented, roomsensor.CodeRequestTooLarge)
		if got.status == http.StatusOK {
			require.Equal(t, string(got.body), string(s.hit(t, "GET", path, nil, "").body), "what was written reads back")
			s.hit(t, "GET", "/readings.csv", url.Values{"shape": {"wide"}}, "")
		}
	})
}

func FuzzHeaders(f *testing.F) {
	s := fuzzed(f)
	f.Add("Bearer rsk_a_b", `W/"x", *`, "gzip;q=0.5", "key=rsk_a_b")
	f.Add("bearer  "+s.key, `"`, ";q=", "k%65y=%zz&key")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, authorization, match, accept, query string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/readings.csv", nil)
		request.URL.RawQuery = query
		request.Header["Authorization"] = []string{authorization}
		request.Header["If-None-Match"] = []string{match}
		request.Header["Accept-Encoding"] = []string{accept}
		if authorization == "" {
			delete(request.Header, "Authorization")
		}
		recorder := httptest.NewRecorder()
		s.server.Config.Handler.ServeHTTP(recorder, request)
		got := response{request: request, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
		require.NoError(t, got.check())
		require.Less(t, got.status, 500, "%s", s.log)
		require.True(t, got.status == http.StatusUnauthorized || strings.Contains(authorization+query, "rsk_"))
		s.log.reset()
	})
}
