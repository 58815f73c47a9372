package burst

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
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

// runBacklog has workers process the load and measures it. It calls work, which starts the workers, with a channel that
// is closed when everything is stored.
func (t *trial) runBacklog(
	ctx context.Context, name string, work func(ctx context.Context, e *env, stored <-chan struct{}) error,
) (r BacklogResult, err error) {
	t.Logf("processing the backlog: %s", name)
	e, err := t.newEnv(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, err != nil)) }()
	if err := e.publishAll(ctx); err != nil {
		return r, err
	}
	stored := make(chan struct{})
	group, working := errgroup.WithContext(ctx)
	began := time.Now()
	group.Go(func() error { return work(working, e, stored) })
	settled, err := e.service.AwaitSettled(working)
	took := time.Since(began)
	close(stored)
	if err := errors.Join(group.Wait(), err); err != nil {
		return r, err
	}
	r = BacklogResult{
		Seconds: seconds(took), Rate: int(float64(t.load.readings) / took.Seconds()), Stall: seconds(settled.Stall),
		Redeliveries: int(settled.Deliveries) - len(t.load.requests),
	}
	if r.Peak, err = e.workerPeak(); err != nil {
		return r, err
	}
	r.Verdict, err = e.verify(ctx)
	return r, err
}

// runWorkers measures how fast n workers process the load.
func (t *trial) runWorkers(ctx context.Context, n int) (r WorkersResult, err error) {
	r.Workers = n
	r.BacklogResult, err = t.runBacklog(ctx, fmt.Sprintf("workers-%d", n),
		func(ctx context.Context, e *env, _ <-chan struct{}) error { return e.startWorkers(ctx, n) })
	return r, err
}

// churnInterval is the time after which a worker joins and another one leaves.
const churnInterval = time.Second

// runChurn has workers join and leave until the load is processed. The oldest leaves whenever a new one has joined.
func (t *trial) runChurn(ctx context.Context) (r ChurnResult, err error) {
	r.BacklogResult, err = t.runBacklog(ctx, "churn", func(ctx context.Context, e *env, stored <-chan struct{}) error {
		ticker := time.NewTicker(churnInterval)
		defer ticker.Stop()
		for {
			if err := e.startWorker(ctx); err != nil {
				return err
			}
			r.Joined++
			if len(e.workers) > 1 {
				took, err := e.workers[0].Stop(stopTimeout)
				if err != nil {
					return err
				}
				e.workers = e.workers[1:]
				r.Left++
				r.SlowestExit = max(r.SlowestExit, seconds(took))
			}
			select {
			case <-stored:
				return nil
			case <-ticker.C:
			}
		}
	})
	return r, err
}
