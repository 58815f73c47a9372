package samples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// faults decide what a proxy does with its nth request, counted from 1. It forwards the request if they do nothing.
type faults func(n int64, w http.ResponseWriter) (done bool)

// startProxy starts a proxy of a service for one sample, and returns its address.
func startProxy(t *testing.T, service string, f faults) string {
	t.Helper()
	target, err := url.Parse(service)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f(requests.Add(1), w) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// busy answers the first four requests like a busy service and a failing proxy. third is what it does with the third.
func busy(third faults) faults {
	return func(n int64, w http.ResponseWriter) bool {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusTooManyRequests, "rate_limit_exceeded")
		case 2:
			return html(w, http.StatusBadGateway)
		case 3:
			return third(n, w)
		case 4:
			return html(w, http.StatusGatewayTimeout)
		}
		return n <= 4
	}
}

// down answers like a proxy that does not reach the service, more often than a sample tries that does not go on forever.
func down(n int64, w http.ResponseWriter) bool {
	w.Header().Set("Retry-After", "0") // A short test.
	return n <= 6 && html(w, http.StatusServiceUnavailable)
}

// cut closes the connection without an answer.
func cut(int64, http.ResponseWriter) bool { panic(http.ErrAbortHandler) }

func html(w http.ResponseWriter, status int) bool {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><head><title>%d %s</title></head></html>\n", status, http.StatusText(status))
	return true
}

// failingMessage is the message of the error that failing sends.
const failingMessage = "This cursor is not valid."

// failing answers every request after the first with an error that a retry cannot fix.
func failing(n int64, w http.ResponseWriter) bool {
	if n > 1 {
		fail(w, http.StatusBadRequest, "cursor_invalid")
	}
	return n > 1
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","code":%q,"message":%q,"param":null,"doc_url":"",`+
		`"request_id":"req_x"}}`+"\n", code, failingMessage)
}

// broken sends the beginning of an export and breaks the connection.
func broken(_ int64, w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "text/csv")
	_, _ = fmt.Fprint(w, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask\n"+
		"2026-11-20T09:50:00Z,0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10,Hall,608.5,21.3,40.2,0,,15\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
