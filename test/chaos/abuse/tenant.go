package abuse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

const (
	// tenantDevices is the number of devices that send. One more has been silent for a month.
	tenantDevices = 100
	// tenantKeys share the requests: a key may send 600 in ten minutes (decision 25).
	tenantKeys = 60
	// answerTimeout is for a whole response. It is longer than every timeout of the service for such a request.
	answerTimeout = 15 * time.Second
	// visibleLimit is for an upload to become visible in /devices/current, from its 202: 5 s, and 1 s for the age of the
	// snapshot (decision 43).
	visibleLimit = 6 * time.Second
	// visibleTimeout ends the wait for an upload.
	visibleTimeout = 30 * time.Second
)

// kind is a kind of request. The p99 is taken per kind, because each has its own duration.
type kind string

// The kinds of requests of the tenant.
const (
	reads   kind = "reads"
	uploads kind = "uploads"
)

// tenant is the well-behaved client. It sends at constant rates and does not wait for answers.
type tenant struct {
	*env
	client  *http.Client
	waiting *waiting

	mu    sync.Mutex
	sent  int // requests to the API
	slice *slice
}

func newTenant(e *env) *tenant {
	return &tenant{
		env: e, slice: newSlice(false), waiting: &waiting{uploads: map[string][]visible{}},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: answerTimeout},
	}
}

// slice is what became of the requests of one period.
type slice struct {
	// patient is set while the database does not answer: 503 with Retry-After is then no failure, if the request succeeds
	// later.
	patient bool
	open    sync.WaitGroup // requests without an outcome

	mu       sync.Mutex
	took     map[kind][]time.Duration
	visible  time.Duration // longest
	requests int
	refused  int // 503 answers to a patient client
	failures map[string]int
}

func newSlice(patient bool) *slice {
	return &slice{patient: patient, took: map[kind][]time.Duration{}, failures: map[string]int{}}
}

// wait waits until every request of the slice has its outcome.
func (s *slice) wait() { s.open.Wait() }

func (s *slice) fail(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[what]++
}

// next begins a slice and returns the one before.
func (c *tenant) next(patient bool) *slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.slice
	c.slice = newSlice(patient)
	return before
}

// run sends until ctx ends, and returns once every request has ended.
func (c *tenant) run(ctx context.Context) {
	defer c.client.CloseIdleConnections()
	var group sync.WaitGroup
	defer group.Wait()
	var tickers sync.WaitGroup
	defer tickers.Wait()
	every := func(perSecond int, f func(context.Context, *slice, int)) {
		tickers.Go(func() {
			ticker := time.NewTicker(time.Second / time.Duration(perSecond))
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				c.mu.Lock()
				s := c.slice
				s.open.Add(1)
				c.mu.Unlock()
				group.Go(func() {
					defer s.open.Done()
					f(ctx, s, n)
				})
			}
		})
	}
	every(5, c.readCurrent)
	every(20, c.readPage)
	every(5, c.readTeam)
	every(1, c.export)
	every(20, c.upload)
}

func (c *tenant) readCurrent(ctx context.Context, s *slice, _ int) {
	body := c.get(ctx, s, "/v1/devices/current")
	if body == nil {
		return
	}
	var page struct {
		Data []struct {
			HardwareID string `json:"hardware_id"`
			Latest     struct {
				BucketAt time.Time `json:"bucket_at"`
			} `json:"latest"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil || len(page.Data) != len(c.team.devices) {
		s.fail("/v1/devices/current is not complete")
		return
	}
	for i := range page.Data {
		c.waiting.show(page.Data[i].HardwareID, page.Data[i].Latest.BucketAt)
	}
}

func (c *tenant) readPage(ctx context.Context, s *slice, n int) {
	device := c.team.devices[n%len(c.team.devices)]
	c.get(ctx, s, "/v1/devices/"+device.ID.String()+"/readings?limit=200&last=3d")
}

func (c *tenant) readTeam(ctx context.Context, s *slice, _ int) { c.get(ctx, s, "/v1/team") }

func (c *tenant) export(ctx context.Context, s *slice, _ int) {
	from := c.history
	c.get(ctx, s, "/v1/readings.csv?from="+roomsensor.FormatTime(from.Add(-time.Hour))+"&to="+roomsensor.FormatTime(from))
}

// get returns the body of a response with status 200, or nil.
func (c *tenant) get(ctx context.Context, s *slice, path string) []byte {
	route, _, _ := strings.Cut(path, "?")
	if strings.HasSuffix(route, "/readings") {
		route = "/v1/devices/{device_id}/readings"
	}
	c.mu.Lock()
	key := c.team.keys[c.sent%len(c.team.keys)]
	c.sent++
	c.mu.Unlock()
	return c.send(ctx, s, reads, route, http.StatusOK, func() (*http.Request, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.api.url()+path, nil)
		if err == nil {
			request.Header.Set("Authorization", "Bearer "+key)
		}
		return request, err //nolint:wrapcheck // It is a constant.
	})
}

// upload sends the next bucket of a device and waits until it is visible.
func (c *tenant) upload(ctx context.Context, s *slice, n int) {
	device := c.team.devices[n%tenantDevices]
	at := c.history.Add(time.Duration(n/tenantDevices) * roomsensor.BucketLength)
	m := roomsensor.Measurement{MeasuredAt: at}
	for i, metric := range roomsensor.Metrics {
		m.Values.Set(metric, float32(20+i))
	}
	u := simulate.Upload{
		HardwareID: device.HardwareID, SentAt: at, Firmware: "2.4.1", Readings: []roomsensor.Measurement{m},
	}
	text := string(u.AppendJSON(nil))
	body := c.send(ctx, s, uploads, "/uploads", http.StatusAccepted, func() (*http.Request, error) {
		url := c.receiver.url() + "/uploads"
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
		if err == nil {
			request.Header.Set("Authorization", "Bearer "+c.team.credentials[0])
		}
		return request, err //nolint:wrapcheck // It is a constant.
	})
	if body == nil {
		return
	}
	took := c.waiting.wait(ctx, device.HardwareID, at)
	s.mu.Lock()
	s.visible = max(s.visible, took)
	s.mu.Unlock()
	switch {
	case took >= visibleTimeout:
		s.fail("an upload did not become visible")
	case took > visibleLimit && !s.patient:
		s.fail(fmt.Sprintf("an upload became visible after more than %s", visibleLimit))
	}
}

// send sends a request, and to a patient slice again after each 503. It returns the body of the wanted answer, or nil.
func (c *tenant) send(
	ctx context.Context, s *slice, k kind, route string, wanted int, makeRequest func() (*http.Request, error),
) []byte {
	began := time.Now()
	for {
		body, status, pause, err := c.try(makeRequest)
		again := err == nil && s.patient && pause > 0 && time.Since(began)+pause < answerTimeout
		if again && retry.Sleep(ctx, pause) == nil {
			s.mu.Lock()
			s.refused++
			s.mu.Unlock()
			continue
		}
		if ctx.Err() != nil {
			return nil // The trial ends.
		}
		s.mu.Lock()
		s.requests++
		s.took[k] = append(s.took[k], time.Since(began))
		s.mu.Unlock()
		switch {
		case err != nil:
			s.fail(fmt.Sprintf("%s: %v", route, reason(err)))
		case status != wanted:
			s.fail(fmt.Sprintf("%s: status %d", route, status))
		default:
			return body
		}
		return nil
	}
}

// try sends a request once. The pause is the Retry-After of a 503, else 0.
func (c *tenant) try(makeRequest func() (*http.Request, error)) (
	body []byte, status int, pause time.Duration, err error,
) {
	request, err := makeRequest()
	if err != nil {
		return nil, 0, 0, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, 0, 0, err //nolint:wrapcheck // reason shortens it.
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, 0, 0, err //nolint:wrapcheck // reason shortens it.
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // Without it, the request is not sent again.
		pause = time.Duration(seconds) * time.Second
	}
	return body, response.StatusCode, pause, nil
}

// waiting are the uploads that are confirmed and not yet visible.
type waiting struct {
	mu      sync.Mutex
	uploads map[string][]visible // by unit
}

type visible struct {
	bucket time.Time
	shown  chan struct{} // closed once the bucket is visible
}

// wait waits until a bucket of a unit is visible, at most visibleTimeout. It returns how long that took.
func (w *waiting) wait(ctx context.Context, hardwareID string, bucket time.Time) time.Duration {
	v := visible{bucket, make(chan struct{})}
	w.mu.Lock()
	w.uploads[hardwareID] = append(w.uploads[hardwareID], v)
	w.mu.Unlock()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, visibleTimeout)
	defer cancel()
	select {
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return 0 // The trial ends.
		}
		return visibleTimeout
	case <-v.shown:
		return time.Since(began)
	}
}

// show marks the uploads of a unit up to a bucket as visible. A later upload may become visible before an earlier one
// of the same unit is stored: such an upload counts as visible.
func (w *waiting) show(hardwareID string, latest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var left []visible
	for _, v := range w.uploads[hardwareID] {
		if v.bucket.After(latest) {
			left = append(left, v)
			continue
		}
		close(v.shown)
	}
	w.uploads[hardwareID] = left
}
