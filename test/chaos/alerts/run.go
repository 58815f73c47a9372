package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/test/harness"
	"roomsensor/test/promtest"
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

// Validate returns an error for an unknown alert.
func (o *Options) Validate() error {
	for _, name := range o.Only {
		if !slices.ContainsFunc(faults(), func(f *fault) bool { return slices.Contains(f.alerts, name) }) {
			return fmt.Errorf("no fault fires the alert %q", name)
		}
	}
	return nil
}

// fault is what goes wrong in an installation, and what an operator does about it.
type fault struct {
	does   string
	alerts []string // that it must fire
	// inject causes the fault. strike is called after it, and once more whenever it returns, until the fault is over.
	inject, strike func(context.Context, *env) error
	// repair removes the fault, as the runbook says.
	repair func(context.Context, *env) error
	// shows are the commands of the runbooks that an operator runs first, with a word of the cause that each prints.
	shows map[string]string
	// logs are lines in the log of the worker to which the runbooks lead.
	logs []string
	team string // that replaces TEAM on the pages; empty means the team that sends
}

// replace replaces what the pages leave open.
func (f *fault) replace(command string) string {
	return strings.ReplaceAll(command, "--team TEAM", "--team "+cmp.Or(f.team, mainTeam))
}

// selected reports whether the options select a fault.
func (o *Options) selected(f *fault) bool {
	chosen := func(name string) bool { return slices.Contains(f.alerts, name) }
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, chosen)
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
	report = newReport(o, e)
	for _, f := range faults() {
		if !o.selected(f) {
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
	if len(o.Only) == 0 {
		if err := errors.Join(e.followIncidents(ctx), e.checkCommands()); err != nil {
			e.Unexpected("%v", err)
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

// try injects a fault, waits until its alerts fire, checks their runbooks, removes the fault, and waits until they
// clear.
func (e *env) try(ctx context.Context, f *fault) ([]Result, error) {
	if err := e.states.awaitQuiet(ctx, e.names); err != nil {
		e.Unexpected("before %s: %v", f.does, err)
		if err := e.states.await(ctx, pollInterval, f.alerts, inactive); err != nil {
			return missed(f), err
		}
	}
	e.Logf("%s: %s", strings.Join(f.alerts, ", "), f.does)
	e.states.reset()
	e.logged = 0
	log, err := e.workerLog()
	if err != nil {
		return missed(f), err
	}
	e.logged = len(log)
	began := time.Now()
	active, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	err = f.inject(active, e)
	if err == nil {
		if f.strike != nil {
			group.Go(func() { e.strike(active, f) })
		}
		if err = e.states.await(ctx, fireTimeout, f.alerts, firing); err == nil {
			e.checkRunbooks(ctx, f)
		}
	}
	stop()
	group.Wait()
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

// strike calls strike of a fault until ctx ends.
func (e *env) strike(ctx context.Context, f *fault) {
	for ctx.Err() == nil {
		if err := f.strike(ctx, e); err != nil && ctx.Err() == nil {
			e.Unexpected("%s: %v", f.alerts[0], err)
			return
		}
	}
}

// states of an alert.
const (
	inactive = "inactive"
	pending  = "pending"
	firing   = "firing"
)

// watcher reads the states of all alerts, and notes when each fired and cleared.
type watcher struct {
	prometheus *promtest.Prometheus

	mu     sync.Mutex
	states map[string]string
	fired  map[string]time.Time // first since reset
	ended  map[string]time.Time // last since reset
	err    error                // of the last read
}

func (w *watcher) run(ctx context.Context) { retry.Every(ctx, pollInterval, w.read) }

func (w *watcher) read(ctx context.Context) {
	states, err := w.prometheus.States(ctx)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		return
	}
	for name, state := range states {
		if state == firing && w.fired[name].IsZero() {
			w.fired[name] = now
		}
		if state != firing && w.states[name] == firing {
			w.ended[name] = now
		}
	}
	w.states = states
}

// reset forgets what fired before.
func (w *watcher) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired, w.ended = map[string]time.Time{}, map[string]time.Time{}
}

// awaitQuiet waits until no alert has been pending or firing for quietTime.
func (w *watcher) awaitQuiet(ctx context.Context, alerts []string) error {
	since := time.Now()
	return harness.Await(ctx, quietTimeout, pollInterval, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range alerts {
			if state := w.states[name]; w.err != nil || state != inactive {
				since = time.Now()
				return errors.Join(w.err, fmt.Errorf("%s is %q", name, state))
			}
		}
		if quiet := time.Since(since); quiet < quietTime {
			return fmt.Errorf("no alert has been active for %s", quiet)
		}
		return nil
	})
}

// await waits until alerts have a state; a pending alert counts as inactive.
func (w *watcher) await(ctx context.Context, timeout time.Duration, alerts []string, state string) error {
	return harness.Await(ctx, timeout, pollInterval, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			return w.err
		}
		for _, name := range alerts {
			is := w.states[name]
			if is == pending {
				is = inactive
			}
			if is != state {
				return fmt.Errorf("%s is %q, not %s", name, w.states[name], state)
			}
		}
		return nil
	})
}

// times returns when alerts fired and cleared since reset.
func (w *watcher) times() (fired, ended map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.fired), maps.Clone(w.ended)
}
