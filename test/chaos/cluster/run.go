package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return harness.Run(ctx, func(ctx context.Context) (*env, error) { return newEnv(ctx, o) }, carryOut)
}

func carryOut(ctx context.Context, e *env) (*Report, error) {
	o := &e.options
	// There are more requests than fit in the time, so that the load lasts until the last fault is over.
	span := time.Duration(o.Rounds) * o.maxRound()
	requests, err := ledger.Make(ledger.Options{
		Seed: o.Seed, Readings: o.Rate * int(span.Seconds()), Span: span, Now: e.fleet.Now, Teams: o.Teams,
		Units: e.fleet.Units,
	})
	if err != nil {
		return nil, err
	}
	r := &run{env: e, faults: &faults{env: e}, trial: harness.NewTrial(e.service, e.fleet, requests)}
	if r.prober, err = e.newProber(ctx); err != nil {
		return nil, err
	}
	if err := e.service.ShortenAckWait(ctx); err != nil {
		return nil, err
	}
	if err := r.trial.Follow(ctx); err != nil {
		return nil, err
	}
	e.Logf("sending up to %d requests in up to %s", len(requests), span)
	if err := r.sendUnderFaults(ctx, requests); err != nil {
		return nil, err
	}
	if err := e.service.Query(ctx, r.readCommits); err != nil {
		return nil, err
	}
	if err := r.trial.Verify(ctx); err != nil {
		return nil, err
	}
	return r.report(ctx)
}

// run is one trial.
type run struct {
	*env
	faults *faults
	trial  *harness.Trial
	prober *prober

	started                   time.Time
	receiver, stream, commits successes
}

// maxRound returns the maximum duration of a round.
func (o *Options) maxRound() time.Duration {
	const slack = 2 * time.Minute
	return time.Duration(len(o.kinds()))*(o.Rest+o.Down+slack/2) + o.Detect + slack
}

// sendUnderFaults sends uploads and API requests until the last fault is over, and waits until the workers are done.
func (r *run) sendUnderFaults(ctx context.Context, requests []*ledger.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { r.prober.run(ctx) })
	group.Go(func() { r.trial.Watcher.Run(ctx) })
	stop, sent := make(chan struct{}), make(chan struct{})
	r.trial.Stop, r.trial.Confirmed = stop, r.confirmed
	group.Go(func() {
		defer close(sent)
		r.trial.Send(ctx, requests)
	})
	r.started = time.Now()
	err := r.faults.run(ctx)
	select {
	case <-sent:
		r.Unexpected("all uploads were sent before the last fault was over")
	default:
	}
	close(stop)
	if err != nil {
		return err
	}
	<-sent
	if err := r.reportEnded(ctx); err != nil {
		return err
	}
	for _, member := range receiverRole.members() {
		if err := r.members[member].stop(ctx); err != nil {
			return err
		}
	}
	return r.trial.Settle(ctx)
}

func (r *run) confirmed(request *ledger.Request, at time.Time) {
	if request.Path == ledger.Stream {
		r.stream.add(at)
	} else {
		r.receiver.add(at)
	}
}

// readCommits reads the times at which batches were stored.
func (r *run) readCommits(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, "SELECT DISTINCT ingested_at FROM readings WHERE device_id <> ALL ($1)",
		r.fleet.Excluded) // CollectRows returns the error.
	stored, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("reading the times of batches: %w", err)
	}
	for _, at := range stored {
		r.commits.add(at)
	}
	return nil
}
