package httpedge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const docs = "https://sensors.example/docs"

func TestWriteErrorEnvelope(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	require.NoError(t, httpedge.WriteError(w, roomsensor.Invalid("Content-Encoding", `Send <gzip> & "zstd".`), docs, "r-1"))
	require.Equal(t, 400, w.Code)
	require.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
	//nolint:testifylint // The bytes count, not what they mean.
	require.Equal(t, `{"error":{"type":"invalid_request_error","code":"validation_failed",`+
		`"message":"Send <gzip> & \"zstd\".","param":"Content-Encoding",`+
		`"doc_url":"https://sensors.example/docs/errors/validation_failed","request_id":"r-1"}}`, w.Body.String())
}

func TestWriteErrorHeaders(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err          *roomsensor.Error
		retry, authn string
	}{
		{roomsensor.CodeNotFound.New(), "", ""},
		{roomsensor.CodeIngestKeyMissing.New(), "", "Bearer"},
		{roomsensor.CodeOverloaded.New(), "5", ""},
		{&roomsensor.Error{Code: roomsensor.CodeOverloaded, RetryAfter: 1100 * time.Millisecond}, "2", ""},
	}
	for _, c := range cases {
		w := httptest.NewRecorder()
		require.NoError(t, httpedge.WriteError(w, c.err, docs, "r-1"))
		require.Equal(t, c.retry, w.Header().Get("Retry-After"))
		require.Equal(t, c.authn, w.Header().Get("WWW-Authenticate"))
		if c.err.Param == "" {
			require.Contains(t, w.Body.String(), `"param":null`)
		}
	}
}

func TestWithRequestID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/livez", nil)
		r.Header.Set(httpedge.RequestIDHeader, "of the client")
		httpedge.WithRequestID(http.NotFoundHandler()).ServeHTTP(w, r)
		id := w.Header().Get(httpedge.RequestIDHeader)
		require.Regexp(t, `^req_[a-z2-7]{26}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
}
