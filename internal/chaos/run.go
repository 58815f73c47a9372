package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"roomsensor/internal/chaos/ledger"
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
	t := &trial{world: w, plan: NewPlan(o), started: time.Now()}
	if err := t.burst(ctx); err != nil {
		return nil, err
	}
	if err := t.judge(ctx); err != nil {
		return nil, err
	}
	return t.report(), nil
}

// trial is one run.
type trial struct {
	*world
	plan     Plan
	injector *injector
	watcher  *watcher
	ledger   *ledger.Ledger

	started    time.Time
	sent       time.Duration // until the last request had its outcome
	settled    time.Duration // from then on, until the workers were done
	replayed   time.Duration // for the whole stream once more
	deliveries uint64
	rows       int
	rejects    int
	verdict    ledger.Verdict
}

// burst sends everything while everything goes wrong.
func (t *trial) burst(ctx context.Context) error {
	requests, err := ledger.Make(ledger.Options{
		Seed: t.options.Seed, Readings: t.options.Readings, Span: t.options.Burst,
		Now: t.fleet.now, Teams: t.options.Teams, Units: t.fleet.units,
	})
	if err != nil {
		return err
	}
	t.ledger = ledger.New(requests)
	if err := t.queue.narrow(ctx, t.options.AckWait); err != nil {
		return err
	}
	t.say("sending %d requests in %s", len(requests), t.options.Burst)
	t.started = time.Now()
	t.injector = &injector{world: t.world, started: t.started}
	t.watcher = newWatcher(t.database)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	calm := make(chan struct{})
	group.Go(func() { t.watcher.run(watching) })
	group.Go(func() {
		defer close(calm)
		t.injector.run(ctx, t.plan)
		t.say("no more faults")
	})
	transport := &http.Transport{MaxIdleConnsPerHost: senders}
	s := &sender{
		world: t.world, ledger: t.ledger, client: &http.Client{Transport: transport}, confirmed: t.watcher.add, calm: calm,
	}
	s.sendAll(ctx, requests)
	transport.CloseIdleConnections()
	t.sent = time.Since(t.started)
	err = t.settleDown(ctx)
	stop()
	group.Wait()
	return err
}

// settleDown waits until the workers are done. The receiver ends first, so that nothing can come after.
func (t *trial) settleDown(ctx context.Context) (err error) {
	t.say("all is sent")
	if err := t.services[receiver].stop(); err != nil {
		return err
	}
	began := time.Now()
	if err := t.queue.narrow(ctx, t.options.AckWait); err != nil {
		return err
	}
	t.deliveries, err = t.settle(ctx)
	t.settled = time.Since(began)
	return err
}

// judge compares, gives the stream to the workers again, and compares once more.
func (t *trial) judge(ctx context.Context) error {
	if err := t.scan(ctx, t.ledger); err != nil {
		return err
	}
	before, err := t.compare(ctx, "the tables")
	if err != nil {
		return err
	}
	rows, err := t.exported(ctx)
	if err != nil {
		return err
	}
	_, csv := t.ledger.Compare(rows)
	t.confirm("the CSV exports", csv)

	t.say("replaying the stream")
	began := time.Now()
	if err := t.replay(ctx); err != nil {
		return err
	}
	if _, err := t.settle(ctx); err != nil {
		return err
	}
	t.replayed = time.Since(began)
	after, err := t.compare(ctx, "the tables after the replay")
	if err == nil {
		t.confirm("what the replay changed", before.Unchanged(after))
	}
	return err
}

// compare holds the tables against the ledger.
func (t *trial) compare(ctx context.Context, where string) (ledger.Found, error) {
	f, err := t.database.find(ctx)
	if err != nil {
		return nil, err
	}
	t.rows, t.rejects = len(f.readings), len(f.rejects)
	rows, verdict := t.ledger.Compare(f.readings)
	verdict.Add(t.ledger.Rejects(f.rejects))
	verdict.Add(t.ledger.States(f.states))
	t.confirm(where, verdict)
	t.confirm("the hours of "+where, rows.Hours(f.hours))
	return rows, nil
}

func (t *trial) confirm(where string, v ledger.Verdict) {
	t.say("%s: %s", where, v.String())
	t.verdict.Confirm(v)
}
