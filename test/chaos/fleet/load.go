package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

// load sends all requests of a trial.
type load struct {
	*env
	sender *deviceClient
	// lateSender is that of the late devices, whose connections the other devices do not wait for.
	lateSender *deviceClient
	http       *http.Client  // of the clients of the API
	accepted   atomic.Int64  // uploads with a 202
	abandoned  atomic.Int64  // uploads without one at the end
	refused    atomic.Int64  // requests of late devices that a receiver asked to repeat
	lateTook   time.Duration // until everything of the late devices was confirmed
}

const (
	// readers is the number of concurrent requests of each kind to the API.
	readers = 64
	// readTimeout bounds a request to the API.
	readTimeout = time.Minute
	// retryAfter is the pause of a device after a failure for which the receiver names none.
	retryAfter = time.Second
)

func (e *env) newLoad() *load {
	return &load{
		env: e, http: &http.Client{Transport: harness.NewTransport(readers), Timeout: readTimeout},
		sender:     newDeviceClient(e.receiver.Address, e.options.Senders),
		lateSender: newDeviceClient(e.receiver.Address, e.options.Senders),
	}
}

// withClient runs a function with a client of a team.
func (l *load) withClient(team int, run func(*client.Client) error) error {
	api, done := l.api()
	defer done()
	c, err := client.New(api.URL(), l.apiKeys[team], client.WithHTTPClient(l.http), client.WithMaxAttempts(1))
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return run(c)
}

func (l *load) close() {
	l.http.CloseIdleConnections()
	l.sender.close()
	l.lateSender.close()
}

// run sends all requests. It returns when every upload was confirmed.
func (l *load) run(ctx context.Context, start time.Time) error {
	o, p := &l.options, l.plan
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return loop(ctx, o.Senders, p.turns, start, p.due, l.upload) })
	for _, reads := range []struct {
		rate float64
		do   func(ctx context.Context, n int, due time.Time)
	}{
		{o.Polls * float64(o.Teams) / time.Minute.Seconds(), l.poll},
		{o.Exports, l.export},
		{o.Probes, func(ctx context.Context, n int, due time.Time) { l.probe(ctx, n, start, due) }},
	} {
		requests, due := evenly(reads.rate, o.Duration)
		group.Go(func() error { return loop(ctx, readers, requests, start, due, reads.do) })
	}
	if o.Late > 0 {
		group.Go(func() error { return l.sendLate(ctx, start) })
	}
	if o.Restart > 0 {
		group.Go(func() error {
			if err := retry.Sleep(ctx, time.Until(start.Add(o.Restart))); err != nil {
				return err
			}
			return l.replaceAPI(ctx)
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped by loop.
}

// upload sends what a device sends in a turn until it is confirmed, as a device does.
func (l *load) upload(ctx context.Context, turn int, due time.Time) {
	device, round := l.plan.device(turn)
	body := l.plan.upload(device, round)
	if body == nil {
		return // It is offline, or late.
	}
	credential := l.credentials[l.plan.team(device)]
	for ctx.Err() == nil {
		status, after, err := l.sender.post(credential, body)
		if status == http.StatusAccepted {
			l.recorder.answered(uploads, time.Since(due))
			l.accepted.Add(1)
			return
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			l.recorder.fail(uploads, innermost(err))
		} else {
			l.recorder.fail(uploads, fmt.Sprintf("status %d", status))
		}
		_ = retry.Sleep(ctx, max(after, retryAfter)) // The loop checks ctx.
	}
	l.abandoned.Add(1)
}

// poll reads the latest state of all devices of a team.
func (l *load) poll(ctx context.Context, n int, due time.Time) {
	team := n % len(l.apiKeys)
	devices, err := l.current(ctx, team)
	if want := l.plan.teamSize(team); err == nil && devices != want {
		err = fmt.Errorf("%d devices instead of %d", devices, want)
	}
	l.finish(ctx, polls, due, err)
}

// current counts the devices on all pages of /devices/current. It does not decode them, because the clients share the
// processors with the service.
func (l *load) current(ctx context.Context, team int) (devices int, err error) {
	api, done := l.api()
	defer done()
	address := api.URL() + "/v1/devices/current"
	for query := "?limit=1000"; query != ""; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+query, nil)
		if err != nil {
			return 0, fmt.Errorf("creating a request: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+l.apiKeys[team])
		response, err := l.http.Do(request)
		if err != nil {
			return 0, fmt.Errorf("reading the current devices: %w", err)
		}
		page, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // It was read.
		if err != nil {
			return 0, fmt.Errorf("reading the current devices: %w", err)
		}
		if response.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("status %d", response.StatusCode)
		}
		devices += bytes.Count(page, []byte(`"device_id":`))
		query = ""
		if _, rest, found := bytes.Cut(page, []byte(`"next_cursor":"`)); found {
			cursor, _, _ := bytes.Cut(rest, []byte(`"`))
			query = "?cursor=" + url.QueryEscape(string(cursor))
		}
	}
	return devices, nil
}

// exportWindow is the window of the exports. A team of a thousand devices has at most 250,000 readings in it.
const exportWindow = 20 * time.Hour

// export downloads the readings of a team.
func (l *load) export(ctx context.Context, n int, due time.Time) {
	l.finish(ctx, exports, due, l.download(ctx, n%len(l.apiKeys)))
}

func (l *load) download(ctx context.Context, team int) error {
	return l.withClient(team, func(c *client.Client) error {
		file, err := c.ExportCSV(ctx, client.ExportQuery{Window: client.Last(exportWindow)})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, file) // It fails if the file is not complete.
		_ = file.Close()                   // Nothing is left to read.
		return err                         //nolint:wrapcheck // Its innermost error counts.
	})
}

// probeTimeout is the longest time for which a probe waits. It then counts as a failed request.
const probeTimeout = 10 * time.Minute

// probe measures the time to visibility of an upload that is due soon: it asks for its reading until the API returns
// it. The pause between two requests is a 20th of the time so far, so that the result is at most 5 % too high, and that
// the requests of a probe are far fewer than the limiter allows.
func (l *load) probe(ctx context.Context, n int, start, due time.Time) {
	const minPause, parts = 20 * time.Millisecond, 20
	device, round, at, ok := l.nextUpload(n, due.Sub(start))
	if !ok || retry.Sleep(ctx, time.Until(start.Add(at))) != nil {
		return
	}
	bucket := l.plan.bucket(round)
	query := client.ReadingQuery{Window: client.Between(bucket, bucket.Add(roomsensor.BucketLength)), PageSize: 1}
	for time.Since(start.Add(at)) < probeTimeout && ctx.Err() == nil {
		asked := time.Now()
		found, err := l.find(ctx, device, query)
		l.finish(ctx, pages, asked, err)
		took := time.Since(start.Add(at))
		if found {
			l.recorder.answered(visible, took)
			return
		}
		_ = retry.Sleep(ctx, max(minPause, took/parts)) // The loop checks ctx.
	}
	l.finish(ctx, visible, due, errors.New("the reading did not appear"))
}

// find reports whether a device has a reading.
func (l *load) find(ctx context.Context, device int, query client.ReadingQuery) (found bool, err error) {
	err = l.withClient(l.plan.team(device), func(c *client.Client) (err error) {
		for _, err = range c.Readings(ctx, l.plan.deviceID(device), query) {
			found = err == nil
		}
		return err
	})
	return found, err
}

// warmUp asks for the snapshot of each team until the API has answered it. It returns how long that took.
func (l *load) warmUp(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for team := range l.apiKeys {
		group.Go(func() error {
			for {
				_, err := l.current(ctx, team)
				if err == nil || ctx.Err() != nil {
					return ctx.Err()
				}
				_ = retry.Sleep(ctx, retryAfter) // The loop checks ctx.
			}
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// nextUpload returns an upload with a single reading that is due within about a second after some time from the start.
// The n-th probe begins its search at a random turn, so that the probes do not share a few teams.
func (l *load) nextUpload(n int, after time.Duration) (device, round int, at time.Duration, ok bool) {
	perSecond := float64(l.plan.devices) / roomsensor.BucketLength.Seconds()
	random := rand.New(rand.NewPCG(l.plan.seed, uint64(n))) //nolint:gosec // It is not a secret, and not negative.
	first := int((after.Seconds() + random.Float64()) * perSecond)
	for turn := first; turn < l.plan.turns; turn++ {
		device, round = l.plan.device(turn)
		if l.plan.sends(device, round) == 1 {
			return device, round, l.plan.due(turn), true
		}
	}
	return 0, 0, 0, false
}

// finish records a request to the API. One that the end of the trial interrupted does not count.
func (l *load) finish(ctx context.Context, k kind, due time.Time, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.recorder.fail(k, innermost(err))
	default:
		l.recorder.answered(k, time.Since(due))
	}
}

// innermost returns the cause of an error, without addresses and ids, so that equal causes count together.
func innermost(err error) string {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		return fmt.Sprintf("status %d, %s", answer.Status, answer.Code)
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
