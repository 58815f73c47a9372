package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/chaos/trial"
)

// Run carries out a trial. The report is there whenever the trial came to a verdict, whichever it is.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(o)
	if err != nil {
		return nil, fmt.Errorf("preparing a trial: %w", err)
	}
	defer func() {
		passed := err == nil && report.Failure() == nil
		err = errors.Join(err, w.close(!passed))
	}()
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	t := &run{world: w, plan: NewPlan(o), started: time.Now()}
	if err := t.burst(ctx); err != nil {
		return nil, err
	}
	if err := t.judge.Judge(ctx); err != nil {
		return nil, err
	}
	return t.report(), nil
}

// run is one trial.
type run struct {
	*world
	plan     Plan
	injector *injector
	watcher  *trial.Watcher
	judge    trial.Judge

	started    time.Time
	sent       time.Duration // until the last request had its outcome
	settled    time.Duration // from then on, until the workers were done
	deliveries uint64
}

// burst sends everything while everything goes wrong.
func (t *run) burst(ctx context.Context) error {
	requests, err := ledger.Make(ledger.Options{
		Seed: t.options.Seed, Readings: t.options.Readings, Span: t.options.Burst,
		Now: t.fleet.Now, Teams: t.options.Teams, Units: t.fleet.Units,
	})
	if err != nil {
		return err
	}
	t.judge = trial.Judge{Service: t.trial, Fleet: t.fleet, Ledger: ledger.New(requests)}
	if err := t.trial.Narrow(ctx); err != nil {
		return err
	}
	t.Say("sending %d requests in %s", len(requests), t.options.Burst)
	t.started = time.Now()
	t.injector = &injector{world: t.world, started: t.started}
	t.watcher = trial.NewWatcher(t.trial)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	calm := make(chan struct{})
	group.Go(func() { t.watcher.Run(watching) })
	group.Go(func() {
		defer close(calm)
		t.injector.run(ctx, t.plan)
		t.Say("no more faults")
	})
	s := &trial.Sender{
		Service: t.trial, Fleet: t.fleet, Ledger: t.judge.Ledger, Calm: calm,
		Confirmed: func(r *ledger.Request, at time.Time) { t.watcher.Add(r.Uploads, at) },
	}
	s.SendAll(ctx, requests)
	t.sent = time.Since(t.started)
	err = t.settleDown(ctx)
	stop()
	group.Wait()
	return err
}

// settleDown waits until the workers are done. The receiver ends first, so that nothing can come after.
func (t *run) settleDown(ctx context.Context) (err error) {
	t.Say("all is sent")
	if err := t.services[receiver].stop(); err != nil {
		return err
	}
	began := time.Now()
	if err := t.trial.Narrow(ctx); err != nil {
		return err
	}
	t.deliveries, err = t.trial.Settle(ctx)
	t.settled = time.Since(began)
	return err
}
