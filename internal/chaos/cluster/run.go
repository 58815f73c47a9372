package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

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
		err = errors.Join(err, w.close(ctx, !passed))
	}()
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	r := &run{world: w, faults: &faults{world: w}}
	if err := r.burst(ctx); err != nil {
		return nil, err
	}
	if err := r.finish(ctx); err != nil {
		return nil, err
	}
	return r.report(ctx)
}

// run is one trial.
type run struct {
	*world
	faults  *faults
	judge   trial.Judge
	prober  *prober
	watcher *trial.Watcher

	receiver, stream, commits gauge
	started                   time.Time
	sent, settled             time.Duration
}

// mostRound is how long a round takes at most, of what is planned: for so long there are uploads to send.
func (o *Options) mostRound() time.Duration {
	const slack = 2 * time.Minute
	return time.Duration(len(o.kinds()))*(o.Rest+o.Down+slack/2) + o.Detect + slack
}

// burst sends uploads and asks questions until the last fault is over.
func (r *run) burst(ctx context.Context) error {
	span := time.Duration(r.options.Rounds) * r.options.mostRound()
	requests, err := ledger.Make(ledger.Options{
		Seed: r.options.Seed, Readings: r.options.Rate * int(span.Seconds()), Span: span,
		Now: r.fleet.Now, Teams: r.options.Teams, Units: r.fleet.Units,
	})
	if err != nil {
		return err
	}
	r.judge = trial.Judge{Service: r.trial, Fleet: r.fleet, Ledger: ledger.New(requests)}
	if r.prober, err = r.newProber(ctx); err != nil {
		return err
	}
	if err := r.trial.Narrow(ctx); err != nil {
		return err
	}
	r.Say("sending up to %d requests in up to %s", len(requests), span)
	r.started = time.Now()
	return r.whileSending(ctx, requests)
}

func (r *run) whileSending(ctx context.Context, requests []*ledger.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // Before the others are waited for.
	r.watcher = trial.NewWatcher(r.trial)
	group.Go(func() { r.prober.run(ctx) })
	group.Go(func() { r.watcher.Run(ctx) })
	enough, sent, calm := make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(calm) // Nothing is held back: there is more to send than there is time.
	s := &trial.Sender{
		Service: r.trial, Fleet: r.fleet, Ledger: r.judge.Ledger, Confirmed: r.confirmed,
		Calm: calm, Enough: enough,
	}
	group.Go(func() {
		defer close(sent)
		s.SendAll(ctx, requests)
	})
	err := r.faults.run(ctx)
	select {
	case <-sent:
		r.Unexpected("all uploads were sent before the last fault was over")
	default:
	}
	close(enough)
	if err != nil {
		return err
	}
	<-sent
	r.sent = time.Since(r.started)
	return r.settle(ctx)
}

func (r *run) confirmed(request *ledger.Request, at time.Time) {
	r.watcher.Add(request.Uploads, at)
	if request.Path == ledger.Stream {
		r.stream.success(at)
	} else {
		r.receiver.success(at)
	}
}

// settle waits until the workers are done. The receivers end first, so that nothing can come after.
func (r *run) settle(ctx context.Context) error {
	r.Say("all is sent")
	if err := r.survivors(ctx); err != nil {
		return err
	}
	for i := range receiverCount {
		if err := r.members[receiverMember(i)].stop(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := r.trial.Narrow(ctx); err != nil {
		return err
	}
	_, err := r.trial.Settle(ctx)
	r.settled = time.Since(began)
	return err
}

// finish judges.
func (r *run) finish(ctx context.Context) error {
	if err := r.trial.Ask(ctx, r.readCommits); err != nil {
		return err
	}
	return r.judge.Judge(ctx)
}

// readCommits reads from the tables when batches were stored.
func (r *run) readCommits(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT DISTINCT ingested_at FROM readings WHERE device_id <> ALL ($1)", r.fleet.Aside)
	if err != nil {
		return fmt.Errorf("reading when batches were stored: %w", err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("reading when batches were stored: %w", err)
	}
	for _, at := range stored {
		r.commits.success(at)
	}
	return nil
}
