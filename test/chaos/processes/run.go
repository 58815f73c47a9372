package processes

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
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
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return harness.Run(ctx, func(ctx context.Context) (*env, error) { return newEnv(ctx, o) }, carryOut)
}

func carryOut(ctx context.Context, e *env) (*Report, error) {
	o := e.options
	requests, err := ledger.Make(ledger.Options{
		Seed: o.Seed, Readings: o.Readings, Span: o.Burst, Now: e.fleet.Now, Teams: o.Teams, Units: e.fleet.Units,
	})
	if err != nil {
		return nil, err
	}
	trial := harness.NewTrial(e.service, e.fleet, requests)
	faults := &injector{env: e}
	plan := NewPlan(o)
	if err := e.sendUnderFaults(ctx, trial, requests, faults, plan); err != nil {
		return nil, err
	}
	if err := trial.Verify(ctx); err != nil {
		return nil, err
	}
	return newReport(o, trial.Result(e.database.info.String()), faults.done, plan), nil
}

// sendUnderFaults sends all requests while the faults happen, and waits until the workers are done.
func (e *env) sendUnderFaults(
	ctx context.Context, trial *harness.Trial, requests []*ledger.Request, faults *injector, plan Plan,
) error {
	if err := e.service.ShortenAckWait(ctx); err != nil {
		return err
	}
	if err := trial.Follow(ctx); err != nil {
		return err
	}
	e.Logf("sending %d requests in %s", len(requests), e.options.Burst)
	faults.started = time.Now()
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
	trial.NoMoreFaults = noMoreFaults
	trial.Send(ctx, requests)
	<-noMoreFaults // They may also restart the receiver.
	if err := e.processes[receiver].stop(); err != nil {
		return err
	}
	return trial.Settle(ctx)
}

func newReport(o Options, common harness.Report, done []Done, plan Plan) *Report {
	r := &Report{Report: common, Options: o, Faults: Counts{}, Plan: done}
	for i := range done {
		r.Faults[done[i].Kind]++
		if done[i].Kind == AddToxic {
			continue
		}
		r.Aimed++
		if done[i].InFlight > 0 {
			r.Hits++
		}
	}
	if planned := plan.counts(); !maps.Equal(r.Faults, planned) {
		r.Findings = append(r.Findings, fmt.Sprintf("the plan was not fully carried out: %v of %v", r.Faults, planned))
	}
	return r
}

// Print writes the report as a table, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	lines := []harness.Line{
		harness.Linef("seed", "%d", r.Options.Seed),
		harness.Linef("database", "%s", r.Hardware.Database),
		harness.Linef("queue", "nats-server %s, sync always", r.Hardware.NATS),
		harness.Linef("workers", "%d; a halt lasts %s", r.Options.Workers, r.Options.Halt),
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		lines = append(lines, harness.Linef("faults: "+string(kind), "%d", r.Faults[kind]))
	}
	lines = append(lines, harness.Linef("faults with messages in flight", "%d of %d kills and halts", r.Hits, r.Aimed))
	return r.Report.Print(out, lines, "")
}
