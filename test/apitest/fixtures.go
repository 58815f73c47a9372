package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// AddDevices creates n devices, which are named after their number from 1, and returns their ids in ascending order.
func (s *Service) AddDevices(t testing.TB, n int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.MustParse(fmt.Sprintf("de000000-0000-4000-8000-%012d", i+1))
	}
	s.Exec(t, `INSERT INTO devices (id, team_id, hardware_id, display_name)
		SELECT id, $1, 'dev:' || i, 'Room ' || i FROM unnest($2::uuid[]) WITH ORDINALITY AS d (id, i)`, s.Team, ids)
	return ids
}

// AddReadings creates n readings for each device, from a time on and at an interval. Their values depend on their
// number and on the position of their device.
func (s *Service) AddReadings(t testing.TB, devices []uuid.UUID, from time.Time, n int, interval time.Duration) {
	t.Helper()
	s.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d, time_bucket('5 minutes', $2::timestamptz + i * $4::interval), 400 + i % 500, 20.125 + j % 7,
			CASE WHEN i % 3 > 0 THEN 40.5 END, i % 1000, 38.25
		FROM unnest($1::uuid[]) WITH ORDINALITY AS u (d, j), generate_series(0, $3::int - 1) AS i`,
		devices, from, n, interval)
}

// Faults decide what a proxy does with its nth request, counted from 1. It forwards the request if they do nothing.
type Faults func(n int64, w http.ResponseWriter, r *http.Request) (done bool)

// Proxy starts a proxy of a service at an address, which fails as a test wants, and returns its URL.
func Proxy(t testing.TB, address string, f Faults) string {
	t.Helper()
	target, err := url.Parse(address)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f(requests.Add(1), w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// FailMessage is the message of the errors of Fail.
const FailMessage = "A test wants this."

// Fail sends an error of the service, which asks to retry after a second if its status allows that.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","code":%q,"message":%q,`+
		`"param":null,"doc_url":"","request_id":"req_x"}}`+"\n", code, FailMessage)
}
