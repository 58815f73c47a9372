package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The stream is one line: what a device just measured waits behind the days that a fleet delivers late. While there is
// such a backlog, workers also read from the line's end and store what is small and fresh there at once. It is stored
// again when its turn comes, which changes nothing; so this may leave out whatever it likes, and lose nothing.
const (
	// backlogAge and backlogUploads are together what makes a backlog. A clock that is wrong makes none alone, and
	// neither does a flood that is stored within moments.
	backlogAge     = 500 * time.Millisecond
	backlogUploads = 20
	// freshBytes is more than an upload of an hour's readings takes. What is larger waits its turn.
	freshBytes = 4 << 10
	// freshFor is how long an upload counts as fresh after its arrival.
	freshFor = 30 * time.Second
	// lookEvery is how soon a backlog is noticed, and its end.
	lookEvery = 100 * time.Millisecond
)

// position is where in the line a worker reads.
type position struct {
	age     time.Duration // backlogAge, but in a test
	uploads uint64        // likewise backlogUploads

	mu      sync.Mutex
	arrived time.Time
	behind  uint64
}

func (p *position) note(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrived, p.behind = d.arrival.At, d.behind
}

// late reports whether there is a backlog, and since when what is in it arrived.
func (p *position) late() (since time.Time, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.arrived, !p.arrived.IsZero() && p.behind >= p.uploads && time.Since(p.arrived) >= p.age
}

// passBacklogs stores fresh uploads ahead of their turn whenever there is a backlog, until ctx ends.
func (w *Worker) passBacklogs(ctx context.Context) {
	var pause backoff
	every(ctx, lookEvery, func() {
		since, late := w.position.late()
		if !late {
			return
		}
		if oldest := time.Now().Add(-freshFor); since.Before(oldest) {
			since = oldest
		}
		err := w.passBacklog(ctx, since)
		if err == nil {
			pause.reset()
			return
		}
		if ctx.Err() == nil {
			w.Log.Debug().Err(err).Msg("fresh uploads wait their turn")
			sleep(ctx, pause.next())
		}
	})
}

// passBacklog reads what arrived since an instant until there is no backlog any more. The error is of the queue or the
// tables.
func (w *Worker) passBacklog(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, err := w.Queue.Ahead(ctx, since)
	if err != nil {
		return fmt.Errorf("reading past the backlog: %w", err)
	}
	deliveries, batches := make(chan *delivery), make(chan *batch)
	var group sync.WaitGroup
	var reading, storing error
	group.Go(func() {
		defer close(deliveries)
		defer messages.Stop()
		reading = w.readAhead(ctx, messages, deliveries)
	})
	group.Go(func() { collect(deliveries, batches) })
	for b := range batches {
		if storing = w.storeAhead(ctx, b); storing != nil {
			cancel()
		}
	}
	group.Wait()
	return errors.Join(reading, storing)
}

func (w *Worker) readAhead(ctx context.Context, messages jetstream.MessagesContext, out chan<- *delivery) error {
	for ctx.Err() == nil {
		if _, late := w.position.late(); !late {
			return nil
		}
		msg, err := messages.Next(jetstream.NextMaxWait(lookEvery))
		switch {
		case errors.Is(err, nats.ErrTimeout):
			continue
		case err != nil:
			return fmt.Errorf("reading past the backlog: %w", err)
		case len(msg.Data()) > freshBytes:
			continue
		}
		if d, err := received(msg); err == nil && d.refusal == nil && time.Since(d.arrival.At) <= freshFor {
			out <- d
		}
	}
	return nil
}

// storeAhead stores what has nothing to reject, in one transaction or not at all.
func (w *Worker) storeAhead(ctx context.Context, b *batch) error {
	units, err := w.lander.installations(ctx, b.deliveries)
	if err != nil {
		return err
	}
	var sound []*outcome
	for _, o := range route(b.deliveries, units) {
		if len(o.rejects) == 0 {
			sound = append(sound, o)
		}
	}
	if err := w.lander.store(ctx, assemble(sound)); err != nil {
		return err
	}
	now := time.Now()
	for _, o := range sound {
		w.metrics.aheadLag.Observe(max(0, now.Sub(o.arrival.At).Seconds()))
	}
	return nil
}
