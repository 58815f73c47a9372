package httpedge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

func TestAccessEntryLog(t *testing.T) {
	t.Parallel()
	panicked := httpedge.Recover(func() error { panic("a bug") })
	entry := httpedge.AccessEntry{
		RequestID: "req_1", Route: "/v1/team", Method: "BREW", Duration: 1500 * time.Microsecond, Bytes: 7, Rows: -1,
	}
	tests := map[string]struct {
		status int
		code   roomsensor.Code
		err    error
		want   string
	}{
		"success":       {200, "", nil, `{"level":"info"}`},
		"client error":  {400, "validation_failed", errors.New("a cause"), `{"level":"info","code":"validation_failed"}`},
		"service error": {503, "overloaded", errors.New("a cause"), `{"level":"error","code":"overloaded","error":"a cause"}`},
		"broken off":    {200, "internal_error", io.ErrShortWrite, `{"level":"error","code":"internal_error","error":"short write"}`},
		"client gone":   {499, "overloaded", io.ErrShortWrite, `{"level":"info","code":"overloaded","error":"short write"}`},
		"panic":         {500, "internal_error", panicked, `{"level":"error","code":"internal_error","error":"panic: a bug"}`},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			e := entry
			e.Status, e.Code, e.Err = c.status, c.code, c.err
			e.Log(zerolog.New(&out))
			var want, got map[string]any
			require.NoError(t, json.Unmarshal([]byte(c.want), &want))
			require.NoError(t, json.Unmarshal(out.Bytes(), &got))
			maps.Copy(want, map[string]any{
				"message": "request", "request_id": "req_1", "route": "/v1/team", "method": "other",
				"status": float64(c.status), "duration_ms": 1.5, "bytes": 7.0,
			})
			if _, ok := errors.AsType[*httpedge.PanicError](c.err); ok {
				require.Contains(t, got["stack"], "access_test.go")
				delete(got, "stack")
			}
			require.Equal(t, want, got)
		})
	}
}

func TestAccessEntryLogOptionalFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	(&httpedge.AccessEntry{Method: "GET", Status: 200, Rows: 3, KeyID: "abc"}).Log(zerolog.New(&out))
	require.Contains(t, out.String(), `"rows":3,"key_id":"abc"`)
}
