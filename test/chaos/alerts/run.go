package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"roomsensor/test/harness"
)

// Options of a trial. The tags are the flags of the command line.
type Options struct {
	// Only selects faults by the alerts that they must fire.
	Only []string `json:"only,omitempty" help:"Inject only the faults of these alerts." placeholder:"ALERT"`
	// Dir keeps programs, logs and streams. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-" help:"Directory for programs, logs and streams (default: a temporary one)." placeholder:"DIR"`
	// Root is the root of the repository.
	Root string `json:"-" kong:"-"`
	// Progress receives a line per event. It may be nil.
	Progress io.Writer `json:"-" kong:"-"`
}

// Full returns the options of a trial of all faults in the root of the repository, where the task runs it.
func Full(uint64) Options { return Options{Root: "."} }

// Validate returns an error for an unknown alert.
func (o *Options) Validate() error {
	for _, name := range o.Only {
		if !slices.ContainsFunc(faults(), func(f *fault) bool { return slices.Contains(f.alerts, name) }) {
			return fmt.Errorf("no fault fires the alert %q", name)
		}
	}
	return nil
}

// selected reports whether the options select a fault.
func (o *Options) selected(f *fault) bool {
	chosen := func(name string) bool { return slices.Contains(f.alerts, name) }
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, chosen)
}

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return harness.Run(ctx, func(ctx context.Context) (*env, error) { return newEnv(ctx, o) }, carryOut)
}

func carryOut(ctx context.Context, e *env) (*Report, error) {
	report := newReport(e)
	for _, f := range faults() {
		if !e.options.selected(f) {
			continue
		}
		results, err := e.try(ctx, f)
		report.Alerts = append(report.Alerts, results...)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			e.Unexpected("%s: %v", f.alerts[0], err)
		}
	}
	report.Findings = e.Findings()
	return report, nil
}

const (
	// quietTimeout is for all alerts of the fault before to clear, fireTimeout and clearTimeout for those of a fault.
	quietTimeout = 3 * time.Minute
	// quietTime is how long no alert may be pending before a fault: longer than the ranges of rates.
	quietTime    = 20 * time.Second
	fireTimeout  = 150 * time.Second
	clearTimeout = 150 * time.Second
	// pollInterval is the accuracy of the times.
	pollInterval = 200 * time.Millisecond
)

// try injects a fault, waits until its alerts fire, removes the fault, and waits until they clear.
func (e *env) try(ctx context.Context, f *fault) ([]Result, error) {
	if err := e.states.awaitQuiet(ctx, e.names); err != nil {
		e.Unexpected("before %s: %v", f.does, err)
		if err := e.states.await(ctx, pollInterval, f.alerts, inactive); err != nil {
			return missed(f), err
		}
	}
	e.Logf("%s: %s", strings.Join(f.alerts, ", "), f.does)
	e.states.reset()
	began := time.Now()
	err := e.awaitFiring(ctx, f)
	repairing := time.Now()
	if f.repair != nil {
		err = errors.Join(err, f.repair(ctx, e))
	}
	repaired := time.Now()
	if err == nil {
		err = e.states.await(ctx, clearTimeout, f.alerts, inactive)
	}
	results := e.results(f, began, repairing, repaired)
	for i := range results {
		e.Logf("%s", results[i].String())
	}
	return results, err
}

// awaitFiring injects a fault until its alerts fire.
func (e *env) awaitFiring(ctx context.Context, f *fault) error {
	if !f.repeated {
		return errors.Join(f.inject(ctx, e), e.states.await(ctx, fireTimeout, f.alerts, firing))
	}
	active, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() {
		for active.Err() == nil {
			if err := f.inject(active, e); err != nil && active.Err() == nil {
				e.Unexpected("%s: %v", f.alerts[0], err)
				return
			}
		}
	})
	return e.states.await(ctx, fireTimeout, f.alerts, firing)
}
