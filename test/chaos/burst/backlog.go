package burst

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// publishAll puts the load directly into the stream.
func (e *env) publishAll(ctx context.Context) error {
	messages := make([]queue.Message, len(e.trial.load.requests))
	for i, r := range e.trial.load.requests {
		u := r.Uploads[0]
		messages[i] = queue.Message{HardwareID: u.Unit.HardwareID, Text: u.Text}
	}
	_, err := e.queue.Publish(ctx, messages)
	return err
}

// drained is the result of awaitDrained.
type drained struct {
	stall        time.Duration // longest time without an acknowledgement
	redeliveries int
}

// awaitDrained waits until the workers have acknowledged every message of the stream.
func (e *env) awaitDrained(ctx context.Context) (d drained, err error) {
	progressed, before := time.Now(), uint64(0)
	err = retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		stream, err := e.service.JS.Stream(ctx, queue.StreamName)
		if err != nil {
			return false, fmt.Errorf("reading the stream: %w", err)
		}
		consumer, err := e.service.Consumer(ctx)
		if err != nil {
			return false, err
		}
		stored := stream.CachedInfo().State.LastSeq
		// Acknowledged messages, including those after the first that is not.
		acked := stored - consumer.NumPending - uint64(consumer.NumAckPending) //nolint:gosec // Not negative.
		if acked != before {
			d.stall = max(d.stall, time.Since(progressed))
			progressed, before = time.Now(), acked
		}
		d.redeliveries = int(consumer.Delivered.Consumer) - int(stored) //nolint:gosec // Some thousands.
		return consumer.AckFloor.Stream >= stored, nil
	})
	if err != nil {
		return d, fmt.Errorf("waiting for the workers: %w", err)
	}
	return d, nil
}

// runWorkers measures how fast n workers process the load.
func (t *trial) runWorkers(ctx context.Context, n int) (r WorkersResult, err error) {
	t.Logf("processing the backlog with %d workers", n)
	e, err := t.newEnv(ctx, fmt.Sprintf("workers-%d", n))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, err != nil)) }()
	if err := e.publishAll(ctx); err != nil {
		return r, err
	}
	group, starting := errgroup.WithContext(ctx)
	workers := make([]*proctest.Service, n)
	began := time.Now()
	for i := range n {
		group.Go(func() (err error) {
			workers[i], err = e.startWorker(starting, i)
			return err
		})
	}
	d, err := e.awaitDrained(ctx)
	took := time.Since(began)
	if err := errors.Join(err, group.Wait()); err != nil {
		return r, err
	}
	r = WorkersResult{
		Workers: n, Seconds: seconds(took), Rate: int(float64(t.load.readings) / took.Seconds()),
		Stall: seconds(d.stall), Redeliveries: d.redeliveries,
	}
	for _, w := range workers {
		peak, err := peakMiB(w)
		if err != nil {
			return r, err
		}
		r.Peak = max(r.Peak, peak)
	}
	r.Verdict, err = e.verify(ctx)
	return r, err
}

// churnInterval is the time after which a worker joins and another one leaves.
const churnInterval = time.Second

// churn is a group of workers of which the oldest leaves whenever a new one has joined.
type churn struct {
	*env
	workers      []*proctest.Service
	joined, left int
	slowest      time.Duration // exit of a worker
}

// runChurn has workers join and leave until the load is processed.
func (t *trial) runChurn(ctx context.Context) (r ChurnResult, err error) {
	t.Logf("processing the backlog with workers that join and leave")
	e, err := t.newEnv(ctx, "churn")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, err != nil)) }()
	if err := e.publishAll(ctx); err != nil {
		return r, err
	}
	c := &churn{env: e}
	if err := c.join(ctx); err != nil {
		return r, err
	}
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.run(ctx, over) }()
	d, err := e.awaitDrained(ctx)
	close(over)
	if err := errors.Join(err, <-ended); err != nil {
		return r, err
	}
	r = ChurnResult{
		Joined: c.joined, Left: c.left, SlowestExit: seconds(c.slowest), Stall: seconds(d.stall),
		Redeliveries: d.redeliveries,
	}
	r.Verdict, err = e.verify(ctx)
	return r, err
}

func (c *churn) run(ctx context.Context, over <-chan struct{}) error {
	ticker := time.NewTicker(churnInterval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("exchanging workers: %w", ctx.Err())
		case <-ticker.C:
		}
		if err := errors.Join(c.join(ctx), c.leave()); err != nil {
			return err
		}
	}
}

func (c *churn) join(ctx context.Context) error {
	w, err := c.startWorker(ctx, c.joined)
	if err != nil {
		return err
	}
	c.joined++
	c.workers = append(c.workers, w)
	return nil
}

func (c *churn) leave() error {
	took, err := c.workers[0].Stop(stopTimeout)
	c.workers = c.workers[1:]
	c.left++
	c.slowest = max(c.slowest, took)
	return err
}
