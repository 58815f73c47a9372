package httpedge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/secretscan"
)

// logged returns the fields of the log line of an entry.
func logged(t *testing.T, e *httpedge.AccessEntry) (fields map[string]any) {
	t.Helper()
	var out bytes.Buffer
	e.Log(httpedge.NewAccessLog(zerolog.New(&out), 1, nil))
	require.NoError(t, json.Unmarshal(out.Bytes(), &fields))
	return fields
}

func TestAccessEntryLog(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 48 a", "decision 48 b")
	panicked := panics.Recover(func() error { panic("a bug") })
	cause := errors.New("a cause")
	tests := map[string]struct {
		status      int
		public      *roomsensor.Error
		err         error
		want, label string
	}{
		"success":       {200, nil, nil, `{"level":"info"}`, "200"},
		"client error":  {400, roomsensor.Invalid("a b", "Send c."), cause, `{"level":"info","code":"validation_failed","param":"a b","error":"Send c."}`, "400"},
		"no path":       {404, roomsensor.NewError(roomsensor.CodeNotFound, "", "No."), cause, `{"level":"info","code":"not_found","path":"/v1/x y","error":"No."}`, "404"},
		"reserved":      {501, roomsensor.NewError(roomsensor.CodeNotImplemented, "", "Not yet."), cause, `{"level":"info","code":"not_implemented","error":"Not yet."}`, "4xx"},
		"service error": {503, roomsensor.CodeOverloaded.New(), cause, `{"level":"error","code":"overloaded","error":"a cause"}`, "503"},
		"limit":         {503, &roomsensor.Error{Code: roomsensor.CodeOverloaded, Limit: "x.key"}, cause, `{"level":"error","code":"overloaded","limit":"x.key","error":"a cause"}`, "503"},
		"broken off":    {200, roomsensor.CodeInternalError.New(), io.ErrShortWrite, `{"level":"error","code":"internal_error","error":"short write"}`, "5xx"},
		"client gone":   {499, roomsensor.CodeOverloaded.New(), io.ErrShortWrite, `{"level":"info","code":"overloaded","error":"short write"}`, "499"},
		"panic":         {500, roomsensor.CodeInternalError.New(), panicked, `{"level":"error","code":"internal_error","error":"panic: a bug"}`, "500"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := httpedge.AccessEntry{
				RequestID: "req_1", Route: "/v1/team", Method: "BREW", Duration: 1500 * time.Microsecond, Bytes: 7, Rows: -1,
				Status: c.status,
			}
			var want map[string]any
			require.NoError(t, json.Unmarshal([]byte(c.want), &want))
			maps.Copy(want, map[string]any{
				"message": "request", "request_id": "req_1", "route": "/v1/team", "method": "other",
				"status": float64(c.status), "duration_ms": 1.5, "bytes": 7.0,
			})
			if c.public != nil {
				r := httptest.NewRequest(http.MethodGet, "/v1/x%20y?key=z", nil)
				r.Header.Set("User-Agent", "test/1\t(x)")
				e.Fail(c.err, c.public, r, "192.0.2.1")
				want["client"], want["user_agent"] = "192.0.2.1", "test/1\uFFFD(x)"
			}
			got := logged(t, &e)
			if _, ok := errors.AsType[*panics.Error](c.err); ok {
				require.Contains(t, got["stack"], "access_test.go")
				delete(got, "stack")
			}
			require.Equal(t, want, got)
			require.Equal(t, c.label, e.StatusLabel())
		})
	}
}

func TestAccessEntryLogOptionalFields(t *testing.T) {
	t.Parallel()
	got := logged(t, &httpedge.AccessEntry{Method: "GET", Status: 200, Rows: 3, KeyID: "abc"})
	require.InDelta(t, 3, got["rows"], 0)
	require.Equal(t, "abc", got["key_id"])
}

// Whatever a client sends, the log repeats a bounded and printable part of it, without secrets.
func TestAccessEntryLogIsBounded(t *testing.T) {
	t.Parallel()
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	secret := key[strings.LastIndex(key, "_")+1:]
	for _, sent := range []string{
		key, secret, strings.ToUpper(key), "x" + secret + "y", strings.Repeat("a b/", 99) + key, strings.Repeat("é", 999) + key,
		strings.Repeat("/", 190) + secret, strings.Repeat("/", 370) + secret, strings.Repeat(secret+"/", 9),
		"Mozilla/5.0 (" + key + ")", "\x1b[31m" + secret,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = "/" + sent
		r.Header.Set("User-Agent", sent)
		e := httpedge.AccessEntry{Status: 404}
		e.Fail(io.EOF, &roomsensor.Error{Code: roomsensor.CodeNotFound, Param: sent, Message: sent}, r, "192.0.2.1")
		fields := logged(t, &e)
		for name, most := range map[string]int{"path": 203, "user_agent": 203, "param": 67, "error": 503} {
			text, _ := fields[name].(string)
			require.NotEmpty(t, text, name)
			require.LessOrEqual(t, len(text), most, name)
			require.Empty(t, secretscan.Find([]byte(text), map[string]string{"secret": secret}), "%s: %s", name, text)
			require.NotContains(t, text, "\x1b")
		}
	}
	require.Equal(t, "/v1/devices/0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10/reading",
		httpedge.Shown("/v1/devices/0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10/reading", 200), "ids are shown")
}

// Requests without a credential write some lines per second, and so do those with which the service fails; all others
// write every line.
func TestAccessLogOfStrangers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := httpedge.NewAccessLog(zerolog.New(&out), 1, nil)
		lines := func(e httpedge.AccessEntry) int {
			out.Reset()
			for range 100 {
				e.Log(log)
			}
			return bytes.Count(out.Bytes(), []byte("\n"))
		}
		stranger := httpedge.AccessEntry{Status: http.StatusUnauthorized, Rows: -1}
		require.Equal(t, 20, lines(stranger))
		require.Zero(t, lines(httpedge.AccessEntry{Status: http.StatusSeeOther, Rows: -1}))
		require.Zero(t, lines(httpedge.AccessEntry{Status: http.StatusOK, Rows: -1}))
		require.Equal(t, 20, lines(httpedge.AccessEntry{Status: http.StatusServiceUnavailable, Rows: -1}))
		for _, e := range []httpedge.AccessEntry{
			{Status: http.StatusUnauthorized, KeyID: "k"},
			{Status: http.StatusForbidden, UserID: "u"},
			{Status: http.StatusServiceUnavailable, KeyID: "k"},
		} {
			require.Equal(t, 100, lines(e), e.Status)
		}
		<-time.After(time.Second) // Of the bubble.
		require.Equal(t, 20, lines(stranger))
	})
}

// TestAccessLogSample checks that a sample leaves out only fast requests that succeed, counts them, and says for how many
// a line stands.
func TestAccessLogSample(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	registry := prometheus.NewRegistry()
	log := httpedge.NewAccessLog(zerolog.New(&out), 10, registry)
	gone := httpedge.AccessEntry{Status: httpedge.StatusClientGone, KeyID: "k", Rows: -1}
	broken := httpedge.AccessEntry{Status: http.StatusOK, KeyID: "k", Rows: -1}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	broken.Fail(io.ErrShortWrite, roomsensor.CodeInternalError.New(), request, "")
	tests := map[string]struct {
		entry httpedge.AccessEntry
		lines int
	}{
		"success":       {httpedge.AccessEntry{Status: http.StatusOK, KeyID: "k", Rows: -1}, 10},
		"of people":     {httpedge.AccessEntry{Status: http.StatusSeeOther, UserID: "u", Rows: -1}, 10},
		"slow":          {httpedge.AccessEntry{Status: http.StatusOK, KeyID: "k", Duration: time.Second, Rows: -1}, 100},
		"client error":  {httpedge.AccessEntry{Status: http.StatusBadRequest, KeyID: "k", Rows: -1}, 100},
		"service error": {httpedge.AccessEntry{Status: http.StatusServiceUnavailable, KeyID: "k", Rows: -1}, 100},
		"broken off":    {broken, 100},
		"client gone":   {gone, 100},
	}
	for name, test := range tests {
		out.Reset()
		for range 100 {
			test.entry.Log(log)
		}
		require.Equal(t, test.lines, bytes.Count(out.Bytes(), []byte("\n")), name)
		require.Equal(t, test.lines == 10, bytes.Contains(out.Bytes(), []byte(`"sample":10`)), name)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	omitted := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		omitted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"sample": 180, "limit": 0}, omitted)
}
