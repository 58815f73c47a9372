// Package feed lets requests for changes wait until a device has changed (A5).
//
//	feed.go    the watermark of the change feed, which moves while requests wait
//	waiter.go  a request that waits
package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// feedInterval is the interval at which the watermark moves while requests wait. A client whose devices change all the
	// time makes a request per interval, 545 in 10 minutes, which the rate limit allows. A change appears after up to 1.3
	// seconds: it may take until A5.4's 2.
	feedInterval = 1100 * time.Millisecond
	// watermarkAge is how old the watermark of a request may be.
	watermarkAge = time.Second
	// watermarkTimeout limits the read of a watermark, which many requests may wait for.
	watermarkTimeout = 5 * time.Second
	// keyChecks is the number of intervals between two checks of the keys of waiting requests, so that a revocation takes
	// effect within 5 seconds (decision 24 k).
	keyChecks = 2

	// maxWaiting limits the number of requests that wait at the same time. Each takes about 20 KB: 40 MB of the 512 MiB of
	// a process.
	maxWaiting = 2000
	// maxWaitingPerKey is more than A5.11 requires.
	maxWaitingPerKey = 8
)

// Backend has the stored data that a feed needs.
type Backend interface {
	// FeedWatermark returns a new watermark: every reading whose time in the feed is before it is committed, and no
	// transaction adds one later.
	FeedWatermark(ctx context.Context) (roomsensor.FeedWatermark, error)
	// FeedChanges returns the devices of some teams that changed in a part of the feed.
	FeedChanges(
		ctx context.Context, teamIDs []uuid.UUID, part roomsensor.FeedRound,
	) (roomsensor.FeedChanges, error)
	// APIKeysByID finds API keys by their public ids. Unknown ids are left out.
	APIKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error)
}

// Feed moves the watermark of the change feed for all requests of the process, and wakes those that wait for a change.
// While none waits, it runs no query.
type Feed struct {
	backend Backend
	now     func() time.Time
	log     zerolog.Logger
	flights singleflight.Group

	limiter *fairshare.Limiter // of the requests that wait

	mu      sync.Mutex
	mark    roomsensor.FeedWatermark
	readAt  time.Time // when its read began
	lag     time.Duration
	tail    time.Time // the part of the feed before it was searched for waiting requests
	cancel  func()    // ends run; nil if it does not run
	stopped bool
	waiting map[*Waiter]bool
}

// New returns a feed, which runs nothing before a request waits.
func New(backend Backend, now func() time.Time, log zerolog.Logger) *Feed {
	return &Feed{
		backend: backend, now: now, log: log, waiting: map[*Waiter]bool{},
		limiter: fairshare.New(fairshare.Config{
			Key: fairshare.Limit{Most: maxWaitingPerKey}, Team: fairshare.Limit{Most: fairshare.Remaining},
			Total: fairshare.Limit{Most: maxWaiting},
		}),
	}
}

// Watermark returns a watermark that is at most watermarkAge old.
func (f *Feed) Watermark(ctx context.Context) (roomsensor.FeedWatermark, error) {
	oldest := time.Now().Add(-watermarkAge)
	f.mu.Lock()
	mark, readAt := f.mark, f.readAt
	f.mu.Unlock()
	if readAt.After(oldest) {
		return mark, nil
	}
	select {
	case <-ctx.Done():
		return roomsensor.FeedWatermark{}, ctx.Err()
	case result := <-f.refresh(ctx):
		if result.Err != nil {
			return roomsensor.FeedWatermark{}, result.Err
		}
		return result.Val.(roomsensor.FeedWatermark), nil //nolint:forcetypeassert // As refresh returns it.
	}
}

// refresh reads a new watermark, once for all requests that need it. It does not end with the request that started it.
// The watermark never moves back: an earlier one that was valid stays valid.
func (f *Feed) refresh(ctx context.Context) <-chan singleflight.Result {
	return f.flights.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watermarkTimeout)
		defer cancel()
		began := time.Now()
		var mark roomsensor.FeedWatermark
		err := panics.Recover(func() (err error) { // singleflight would end the process on a panic.
			mark, err = f.backend.FeedWatermark(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.readAt, f.lag = began, began.Sub(mark.At)
		if mark.At.Before(f.mark.At) {
			mark.At = f.mark.At
		}
		f.mark = mark
		return mark, nil
	})
}

func (f *Feed) endRun() {
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
}

// watch makes sure that requests are woken by changes after a time. It returns false if the feed was searched beyond
// that time already.
func (f *Feed) watch(ctx context.Context, after time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.stopped:
		return false
	case f.cancel == nil:
		f.tail = after
		ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go f.run(ctx)
	}
	return !after.Before(f.tail)
}

// Stop wakes all requests. From now on none is held.
func (f *Feed) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	f.endRun()
	for w := range f.waiting {
		w.wake(nil)
	}
}

// run moves the watermark and wakes requests until ctx ends.
func (f *Feed) run(ctx context.Context) {
	for i := 1; retry.Sleep(ctx, feedInterval) == nil; i++ {
		err := panics.Recover(func() error { // A panic would end the process.
			ctx, cancel := context.WithTimeout(ctx, watermarkTimeout)
			defer cancel()
			if i%keyChecks == 0 {
				if err := f.checkKeys(ctx); err != nil {
					return err
				}
			}
			return f.advance(ctx)
		})
		if err != nil && ctx.Err() == nil {
			f.log.Warn().Err(err).Msg("could not look for changes, trying again")
		}
	}
}

// advance moves the watermark, and wakes the requests whose devices changed before it.
func (f *Feed) advance(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-f.refresh(ctx):
		if result.Err != nil {
			return result.Err
		}
	}
	f.mu.Lock()
	part := roomsensor.FeedRound{From: f.tail, To: f.mark.At}
	var teams []uuid.UUID
	for w := range f.waiting {
		teams = append(teams, w.key.TeamID)
	}
	f.mu.Unlock()
	if part.Empty() {
		return nil
	}
	changes, err := f.backend.FeedChanges(ctx, httpedge.SortedIDs(teams), part)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // Another run has begun, or none is needed.
		return ctx.Err()
	}
	f.tail = part.To
	for w := range f.waiting {
		if changes.Any || w.wants(changes.Devices[w.key.TeamID]) || !slices.Contains(teams, w.key.TeamID) {
			w.wake(nil) // The last ones came while the feed was searched.
		}
	}
	return nil
}

// checkKeys ends the requests whose keys were revoked or deleted, or have expired.
func (f *Feed) checkKeys(ctx context.Context) error {
	f.mu.Lock()
	byID := map[string]error{}
	for w := range f.waiting {
		byID[w.key.ID] = roomsensor.CodeAPIKeyInvalid.New()
	}
	f.mu.Unlock()
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	keys, err := f.backend.APIKeysByID(ctx, ids)
	if err != nil {
		return err
	}
	for i := range keys {
		switch key := &keys[i]; {
		case key.RevokedAt != nil:
			byID[key.ID] = roomsensor.CodeAPIKeyRevoked.New()
		case key.ExpiresAt != nil && !f.now().Before(*key.ExpiresAt):
			byID[key.ID] = roomsensor.CodeAPIKeyExpired.New()
		default:
			byID[key.ID] = nil
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.waiting {
		if reason := byID[w.key.ID]; reason != nil {
			w.wake(reason)
		}
	}
	return nil
}

// Metrics returns the metrics of the feed.
func (f *Feed) Metrics() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return value()
		})
	}
	return []prometheus.Collector{
		gauge("roomsensor_api_changes_waiting", "Requests for changes that wait.",
			func() float64 { return float64(len(f.waiting)) }),
		gauge("roomsensor_api_changes_lag_seconds", "How far the change feed was behind the clock of the API at the last "+
			"request for changes: up to 0.1, and more while the transaction of a worker lasts.",
			func() float64 { return f.lag.Seconds() }),
	}
}
