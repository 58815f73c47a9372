package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
)

// The stream is one line: a reading that was just measured waits behind the days that a fleet delivers late. During
// such a backlog, workers also read from the end of the stream and store small, fresh uploads at once. Every upload is
// stored again in its turn, which changes nothing. So the priority lane may skip any upload, and loses nothing. If it
// cannot store all of them, it skips those of the teams that send the most: see laneBatch.
const (
	// backlogAge and backlogUploads define a backlog together. A wrong clock alone makes none, and neither does a burst
	// that is stored within moments.
	backlogAge     = 500 * time.Millisecond
	backlogUploads = 20
	// freshBytes is more than an upload of one hour's readings. Larger uploads wait their turn.
	freshBytes = 4 << 10
	// freshFor is the age up to which an upload is fresh.
	freshFor = 30 * time.Second
	// backlogCheckEvery is how soon a worker detects a backlog, and its end.
	backlogCheckEvery = 100 * time.Millisecond
)

// backlog knows the position of the worker in the stream.
type backlog struct {
	minAge     time.Duration // of the last delivery
	minUploads uint64        // that wait behind it

	mu      sync.Mutex
	arrived time.Time
	pending uint64
}

// observe updates the position.
func (b *backlog) observe(d *queue.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived, b.pending = d.Arrival.At, d.Pending
}

// since reports whether there is a backlog, and when its oldest upload arrived.
func (b *backlog) since() (arrived time.Time, exists bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrived, !b.arrived.IsZero() && b.pending >= b.minUploads && time.Since(b.arrived) >= b.minAge
}

// runPriorityLane serves the priority lane whenever there is a backlog, until ctx ends.
func (w *Worker) runPriorityLane(ctx context.Context) {
	attempt := 0
	retry.Every(ctx, backlogCheckEvery, func(ctx context.Context) {
		since, exists := w.backlog.since()
		if !exists {
			return
		}
		if oldest := time.Now().Add(-freshFor); since.Before(oldest) {
			since = oldest
		}
		err := w.servePriorityLane(ctx, since)
		if err == nil {
			attempt = 0
			return
		}
		if ctx.Err() == nil {
			w.Log.Debug().Err(err).Msg("could not serve the priority lane; fresh uploads wait their turn")
			_ = w.jittered(backoff).Sleep(ctx, attempt) // Every ends with ctx.
			attempt++
		}
	})
}

// servePriorityLane stores the uploads since an instant until there is no backlog. It returns the first error of the
// queue or the database.
func (w *Worker) servePriorityLane(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumer, err := w.Queue.ConsumePriorityLane(ctx, since)
	if err != nil {
		return err
	}
	deliveries, batches := make(chan *queue.Delivery), make(chan *laneBatch)
	var group sync.WaitGroup
	var fetching, writing error
	group.Go(func() {
		defer close(deliveries)
		defer consumer.Stop()
		fetching = w.fetchFresh(ctx, consumer, deliveries)
	})
	group.Go(func() { collect(deliveries, batches, func() *laneBatch { return newLaneBatch(w.laneBytes) }) })
	for b := range batches {
		if writing = w.writeFresh(ctx, b); writing != nil {
			cancel()
		}
	}
	group.Wait()
	return errors.Join(fetching, writing)
}

// fetchFresh sends the small and fresh uploads to out until there is no backlog or ctx ends.
func (w *Worker) fetchFresh(ctx context.Context, consumer *queue.Consumer, out chan<- *queue.Delivery) error {
	for ctx.Err() == nil {
		if _, exists := w.backlog.since(); !exists {
			return nil
		}
		next, err := nextWithin(ctx, consumer, backlogCheckEvery)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, queue.ErrNoMetadata):
			continue
		case err != nil:
			return fmt.Errorf("reading the priority lane: %w", err)
		case len(next.Text) > freshBytes || time.Since(next.Arrival.At) > freshFor:
			continue
		}
		out <- next
	}
	return nil
}

func nextWithin(ctx context.Context, consumer *queue.Consumer, wait time.Duration) (*queue.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return consumer.Next(ctx)
}

// writeFresh stores the uploads of a batch that have no rejects, in one transaction, or in several where the database
// refuses some of them.
func (w *Worker) writeFresh(ctx context.Context, b *laneBatch) error {
	var deliveries []*delivery
	for _, next := range b.deliveries() {
		if d := received(next); d.refusal == nil {
			deliveries = append(deliveries, d)
		}
	}
	results, err := w.writer.resolve(ctx, deliveries)
	if err != nil {
		return err
	}
	clean := slices.DeleteFunc(results, func(r result) bool { return len(r.rejects) > 0 })
	err = bisect(0, len(clean), &refusalBudget{left: maxRefusals}, func(from, to int) error {
		err := w.writer.commit(ctx, assemble(clean[from:to]), false)
		for i := from; err == nil && i < to; i++ {
			w.metrics.priorityLag.Observe(max(0, time.Since(clean[i].delivery.arrival.At).Seconds()))
		}
		return err
	}, func(_, _ int, err error) error { return err })
	if isRefused(err) {
		return nil // What was refused waits its turn.
	}
	return err
}
