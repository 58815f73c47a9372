package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/test/harness"
)

// successes records when requests succeeded and failed. It is safe for concurrent use.
type successes struct {
	mu     sync.Mutex
	times  []time.Time
	failed []failure
}

// failure is a failed request as the client sees it.
type failure struct {
	at    time.Time
	error string
}

func (s *successes) add(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, at)
}

func (s *successes) addFailure(at time.Time, err string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, failure{at, err})
}

// outage returns the longest time without a success between two instants.
func (s *successes) outage(from, to time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.times, time.Time.Compare)
	last := from
	for _, at := range s.times {
		if at.After(from) && at.Before(to) {
			longest = max(longest, at.Sub(last))
			last = at
		}
	}
	return max(longest, to.Sub(last))
}

// firstAfter returns the first success after an instant, or the zero time if there is none.
func (s *successes) firstAfter(instant time.Time) (first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.times {
		if at.After(instant) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// failures counts the failures between two instants by their error.
func (s *successes) failures(from, to time.Time) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, f := range s.failed {
		if !f.at.Before(from) && f.at.Before(to) {
			counts[f.error]++
		}
	}
	return counts
}

const (
	// probeInterval is the precision of outages of the API.
	probeInterval = 200 * time.Millisecond
	// probeKeys share the requests: the limiter allows 600 requests per key in 10 minutes (decision 25).
	probeKeys = 8
	// probeTimeout limits a client's wait for an answer.
	probeTimeout = 10 * time.Second
)

// prober sends requests to the API at a constant rate.
type prober struct {
	clients   []*client.Client // of different keys
	device    uuid.UUID
	successes successes
}

// newProber alternates between the snapshot of a team and the readings of one of its devices.
func (e *env) newProber(ctx context.Context) (*prober, error) {
	p := &prober{device: e.fleet.Units[0].Device}
	err := e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		keys, err := harness.InsertAPIKeys(ctx, conn, e.fleet.Teams[0].ID, probeKeys)
		for _, key := range keys {
			c, err := harness.NewClient(e.service.API, key, client.WithMaxAttempts(1))
			if err != nil {
				return err
			}
			p.clients = append(p.clients, c)
		}
		return err
	})
	return p, err
}

// run sends requests until ctx ends. It does not wait for answers.
func (p *prober) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	i := 0
	retry.Every(ctx, probeInterval, func(ctx context.Context) {
		c, request := p.clients[i%len(p.clients)], p.readCurrent
		if i%2 != 0 {
			request = p.readReadings
		}
		group.Go(func() { p.send(ctx, c, request) })
		i++
	})
}

func (p *prober) readCurrent(ctx context.Context, c *client.Client) error {
	for _, err := range c.CurrentDevices(ctx, client.DeviceQuery{}) {
		return err
	}
	return nil
}

func (p *prober) readReadings(ctx context.Context, c *client.Client) error {
	for _, err := range c.Readings(ctx, p.device, client.ReadingQuery{}) {
		return err
	}
	return nil
}

func (p *prober) send(ctx context.Context, c *client.Client, request func(context.Context, *client.Client) error) {
	answering, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	sent := time.Now()
	err := request(answering, c)
	refusal, refused := errors.AsType[*client.Error](err)
	switch {
	case ctx.Err() != nil: // The trial is over.
	case refused:
		p.successes.addFailure(sent, fmt.Sprintf("%d %s", refusal.Status, http.StatusText(refusal.Status)))
	case err != nil:
		p.successes.addFailure(sent, "no answer")
	default:
		p.successes.add(time.Now())
	}
}
