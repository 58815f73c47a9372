package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// Report is the result of a trial.
type Report struct {
	harness.Report
	Options Options `json:"options"`
	Faults  Counts  `json:"faults"` // that happened
	// Hits counts the kills and halts that happened while workers held messages, of Aimed.
	Hits  int    `json:"hits"`
	Aimed int    `json:"aimed"`
	Plan  []Done `json:"plan"`
}

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e, err := newEnv(ctx, o)
	if e != nil {
		defer func() {
			passed := err == nil && report.Failure() == nil
			err = errors.Join(err, e.Close(ctx, !passed))
		}()
	}
	if err != nil {
		return nil, err
	}
	requests, err := ledger.Make(ledger.Options{
		Seed: o.Seed, Readings: o.Readings, Span: o.Burst, Now: e.fleet.Now, Teams: o.Teams, Units: e.fleet.Units,
	})
	if err != nil {
		return nil, err
	}
	trial := harness.NewTrial(e.service, e.fleet, requests)
	plan := NewPlan(o)
	faults, err := e.sendUnderFaults(ctx, trial, requests, plan)
	if err != nil {
		return nil, err
	}
	if err := trial.Verify(ctx); err != nil {
		return nil, err
	}
	return newReport(o, trial.Report(e.database.info.String()), faults, plan), nil
}

// sendUnderFaults sends all requests while the faults happen, and waits until the workers are done.
func (e *env) sendUnderFaults(
	ctx context.Context, trial *harness.Trial, requests []*ledger.Request, plan Plan,
) (*injector, error) {
	if err := e.service.ShortenAckWait(ctx); err != nil {
		return nil, err
	}
	e.Logf("sending %d requests in %s", len(requests), e.options.Burst)
	faults := &injector{env: e, started: time.Now()}
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	noMoreFaults := make(chan struct{})
	group.Go(func() { trial.Watcher.Run(watching) })
	group.Go(func() {
		defer close(noMoreFaults)
		faults.run(ctx, plan)
		e.Logf("no more faults")
	})
	trial.Send(ctx, requests, noMoreFaults, nil, nil)
	if err := e.processes[receiver].stop(); err != nil {
		return nil, err
	}
	return faults, trial.Settle(ctx)
}

func newReport(o Options, common harness.Report, faults *injector, plan Plan) *Report {
	r := &Report{Report: common, Options: o, Faults: faults.counts(), Plan: faults.done}
	r.Hits, r.Aimed = faults.hits()
	if planned := plan.counts(); r.Faults != planned {
		r.Findings = append(r.Findings, fmt.Sprintf("the plan was not fully carried out: %+v of %+v", r.Faults, planned))
	}
	return r
}

// Failure returns nil if the ledger matches what is stored and the plan was carried out.
func (r *Report) Failure() error {
	if r == nil {
		return nil
	}
	return r.Report.Failure()
}

// Print writes the report as a table, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	f := &r.Faults
	return r.Report.Print(out, []harness.Line{
		harness.Linef("seed", "%d", r.Options.Seed),
		harness.Linef("database", "%s", r.Hardware.Database),
		harness.Linef("queue", "nats-server %s, sync always", r.Hardware.NATS),
		harness.Linef("workers", "%d", r.Options.Workers),
		harness.Linef("kills of workers", "%d", f.WorkerKills),
		harness.Linef("kills of the receiver", "%d", f.ReceiverKills),
		harness.Linef("kills of nats-server", "%d", f.QueueKills),
		harness.Linef("kills of PostgreSQL", "%d, and %d of one backend", f.DatabaseKills, f.BackendKills),
		harness.Linef("suspended workers", "%d, for %s each", f.Halts, r.Options.Halt),
		harness.Linef("disturbed connections", "%d", f.Toxics),
		harness.Linef("faults with messages in flight", "%d of %d kills and halts", r.Hits, r.Aimed),
	}, "")
}
