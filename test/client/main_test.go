package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/test/apitest"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// The devices of the fixture.
var (
	// weightRoom has readings on November 1, 2024.
	weightRoom = uuid.MustParse("0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10")
	dorm       = uuid.MustParse("6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421")
)

// startFixture starts a service with two devices, of which the first has every field and some readings.
func startFixture(t testing.TB) *apitest.Service {
	t.Helper()
	s := apitest.Start(t,
		harness.Device{ID: weightRoom, HardwareID: "dev:1", Name: "Weight room", Metadata: map[string]string{"building": "gym"}},
		harness.Device{ID: dorm, HardwareID: "dev:2", Name: "Dorm 12"})
	s.Exec(t, `UPDATE device_state SET firmware_version = '2.4.1', last_seen_at = '2024-11-01 00:20:03.25Z', rssi_dbm = -87,
		signal_bars = 2 WHERE device_id = $1`, weightRoom)
	s.Exec(t, `UPDATE devices SET display_name = NULL WHERE id = $1`, dorm)
	s.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at) VALUES
		($1, '2024-11-01 00:00Z', 612, 21.4, 40.1, 0, 38.2, '2024-11-01 00:05:03Z'),
		($1, '2024-11-01 00:05Z', 608.5, 21.3, NULL, 0, NULL, '2024-11-01 00:10:03Z'),
		($1, '2024-11-01 00:10Z', 601, 21.3, 40.3, 12.5, 37.9, '2024-11-01 00:15:03Z'),
		($2, '2024-11-01 00:10Z', 455, 19.8, 44, 12.5, 31.2, '2024-11-01 00:15:03Z')`, weightRoom, dorm)
	s.Exec(t, `INSERT INTO assignments (id, device_id, type, label, home_or_travel, started_at, ended_at, external_ref) VALUES
		('c1d9a7f2-5b1e-4f3a-8c6d-7e2b4a9f0c35', $1, 'athlete', 'A. Runner', 'travel', '2024-10-01Z', '2024-11-01 00:05Z', 'crm-7'),
		('2a64f7d0-7b0f-4c0e-8b53-64c1f2a9d7e8', $1, 'place', 'Weight room', 'home', '2024-11-01 00:05Z', NULL, NULL)`, weightRoom)
	return s
}

// november1 is the day of the readings.
var november1 = client.Between(
	time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 11, 2, 0, 0, 0, 0, time.UTC))

// faults is a transport between a client and a real service. It records the requests, and can replace or break the
// response to each.
type faults struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string                                       // of requests
	answers  [][]byte                                       // bodies of responses
	fault    []func(*http.Response) (*http.Response, error) // for the first responses; nil entries change nothing
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sent bytes.Buffer
	if r.Body != nil {
		_, _ = sent.ReadFrom(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent.Bytes()))
	}
	f.requests, f.bodies = append(f.requests, r), append(f.bodies, sent.String())
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	f.answers = append(f.answers, body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	if len(f.fault) > 0 {
		fault := f.fault[0]
		f.fault = f.fault[1:]
		if fault != nil {
			return fault(response)
		}
	}
	return response, err
}

// newClient returns a client of a service through f. Its pauses take no time, and are returned.
func newClient(t *testing.T, s *apitest.Service, f *faults, options ...client.Option) (*client.Client, *[]time.Duration) {
	t.Helper()
	pauses := &[]time.Duration{}
	options = append(options, client.WithHTTPClient(&http.Client{Transport: f}),
		client.WithSleep(func(ctx context.Context, d time.Duration) error {
			*pauses = append(*pauses, d)
			return ctx.Err()
		}))
	c, err := client.New(s.URL, s.Key, options...)
	require.NoError(t, err)
	return c, pauses
}
