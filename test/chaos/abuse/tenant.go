package abuse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/test/harness"
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
	pages   kind = "pages"    // of the dashboard
	signIns kind = "sign-ins" // not judged by their duration
)

// tenant is the well-behaved client. It sends at constant rates and does not wait for answers.
type tenant struct {
	*env
	client  *http.Client
	waiting *waiting

	cookie *http.Cookie // of a person who is signed in

	mu    sync.Mutex
	sent  int // requests to the API
	slice *slice
}

func newTenant(e *env) *tenant {
	return &tenant{
		env: e, slice: newSlice(false), waiting: &waiting{uploads: map[string][]visible{}},
		client: &http.Client{Transport: harness.NewTransport(100), Timeout: answerTimeout},
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
	every(4, c.openOverview)
	every(1, c.signIn)
}

func (c *tenant) readCurrent(ctx context.Context, s *slice, _ int) {
	var devices []client.CurrentDevice
	read := c.read(ctx, s, "/v1/devices/current", func(ctx context.Context, api *client.Client) error {
		devices = nil // Those of an earlier attempt.
		for device, err := range api.CurrentDevices(ctx, client.DeviceQuery{}) {
			if err != nil {
				return err
			}
			devices = append(devices, device)
		}
		return nil
	})
	if !read {
		return
	}
	if len(devices) != len(c.team.devices) {
		s.fail("/v1/devices/current is not complete")
		return
	}
	for i := range devices {
		if latest := devices[i].Latest; latest != nil {
			c.waiting.show(devices[i].HardwareID, latest.BucketAt)
		}
	}
}

func (c *tenant) readPage(ctx context.Context, s *slice, n int) {
	device := c.team.devices[n%len(c.team.devices)]
	query := client.ReadingQuery{Window: client.Last(3 * 24 * time.Hour), PageSize: 200}
	c.read(ctx, s, "/v1/devices/{device_id}/readings", func(ctx context.Context, api *client.Client) error {
		for _, err := range api.Readings(ctx, device.ID, query) {
			return err // One page is enough.
		}
		return nil
	})
}

func (c *tenant) readTeam(ctx context.Context, s *slice, _ int) {
	c.read(ctx, s, "/v1/team", func(ctx context.Context, api *client.Client) error {
		_, err := api.Team(ctx)
		return err
	})
}

func (c *tenant) export(ctx context.Context, s *slice, _ int) {
	query := client.ExportQuery{Window: client.Between(c.history.Add(-time.Hour), c.history)}
	c.read(ctx, s, "/v1/readings.csv", func(ctx context.Context, api *client.Client) error {
		export, err := api.ExportCSV(ctx, query)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, export)
		return errors.Join(err, export.Close())
	})
}

// read sends a read with the next key, and reports whether it succeeded.
func (c *tenant) read(
	ctx context.Context, s *slice, route string, request func(context.Context, *client.Client) error,
) bool {
	c.mu.Lock()
	key := c.team.keys[c.sent%len(c.team.keys)]
	c.sent++
	c.mu.Unlock()
	return c.send(ctx, s, reads, route, func(ctx context.Context) error {
		// The trial decides by itself when a request is sent again.
		api, err := client.New(c.api.URL(), key, client.WithHTTPClient(c.client), client.WithMaxAttempts(1))
		if err != nil {
			return err
		}
		return request(ctx, api)
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
	text := u.AppendJSON(nil)
	if !c.send(ctx, s, uploads, "/uploads", func(ctx context.Context) error { return c.post(ctx, text) }) {
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

// post sends an upload to the receiver once. An answer other than 202 is a *client.Error.
func (c *tenant) post(ctx context.Context, text []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.receiver.URL()+"/uploads", bytes.NewReader(text))
	if err != nil {
		return err //nolint:wrapcheck // It is a constant.
	}
	request.Header.Set("Authorization", "Bearer "+c.team.credentials[0])
	response, err := c.client.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // reason shortens it.
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err //nolint:wrapcheck // reason shortens it.
	}
	if response.StatusCode != http.StatusAccepted {
		return newError(response)
	}
	return nil
}

// newError returns the error of a refused request.
func newError(response *http.Response) error {
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // Without it, the request is not sent again.
	return &client.Error{Status: response.StatusCode, RetryAfter: time.Duration(seconds) * time.Second}
}

// send sends a request, and to a patient slice again after each 503. It reports whether the request succeeded.
func (c *tenant) send(
	ctx context.Context, s *slice, k kind, route string, try func(context.Context) error,
) bool {
	began := time.Now()
	for {
		err := try(ctx)
		refusal, refused := errors.AsType[*client.Error](err)
		if refused && refusal.Status == http.StatusServiceUnavailable && refusal.RetryAfter > 0 && s.patient &&
			time.Since(began)+refusal.RetryAfter < answerTimeout && retry.Sleep(ctx, refusal.RetryAfter) == nil {
			s.mu.Lock()
			s.refused++
			s.mu.Unlock()
			continue
		}
		if ctx.Err() != nil {
			return false // The trial ends.
		}
		s.mu.Lock()
		s.requests++
		s.took[k] = append(s.took[k], time.Since(began))
		s.mu.Unlock()
		switch {
		case refused:
			s.fail(fmt.Sprintf("%s: status %d", route, refusal.Status))
		case err != nil:
			s.fail(fmt.Sprintf("%s: %v", route, reason(err)))
		}
		return err == nil
	}
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
