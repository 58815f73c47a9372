package abuse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/test/harness"
)

// Options are the times and the limit of a trial. The tags are the flags of the command line.
type Options struct {
	Idle   time.Duration `json:"idle_ns" help:"Time without an attack before each attack." placeholder:"DURATION"`
	Attack time.Duration `json:"attack_ns" help:"Time under each attack." placeholder:"DURATION"`
	// Rounds is how often an attack is repeated at most, while the tenant is too slow under it.
	Rounds int `json:"rounds" help:"Most repetitions of an attack under which the tenant is too slow." placeholder:"N"`
	// MaxRatio is how many times slower the tenant may become under an attack.
	MaxRatio float64 `json:"max_ratio" help:"Limit of p99 under an attack / p99 without it." placeholder:"N"`
	// Only selects attacks by name.
	Only   []string `json:"only,omitempty" help:"Run these attacks only." placeholder:"NAME"`
	Memory int      `json:"memory_mib" help:"Memory limit of each process in MiB." placeholder:"MIB"`
	// Dir keeps programs, logs and streams. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-" help:"Directory for programs, logs and streams (default: a temporary one)." placeholder:"DIR"`
	// Progress receives a line per event. It may be nil.
	Progress io.Writer `json:"-" kong:"-"`
}

// Full returns the options of the trial that docs/operate/abuse.md describes.
func Full(uint64) Options {
	return Options{Idle: 10 * time.Second, Attack: 20 * time.Second, Rounds: 3, MaxRatio: 3, Memory: 256}
}

// Short returns the options of the trial in CI: about 2 minutes, unless attacks are repeated.
func Short(uint64) Options {
	return Options{Idle: time.Second, Attack: 5 * time.Second, Rounds: 3, MaxRatio: 3, Memory: 256}
}

// Validate returns an error for options with which nothing can be measured, or for an unknown attack.
func (o *Options) Validate() error {
	if o.Idle <= 0 || o.Attack <= 0 || o.Rounds < 1 || o.MaxRatio <= 0 || o.Memory < 1 {
		return errors.New("all times and numbers must be greater than 0")
	}
	for _, name := range o.Only {
		if find(name) == nil {
			return fmt.Errorf("there is no attack %q", name)
		}
	}
	return nil
}

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return harness.Run(ctx, func(ctx context.Context) (*env, error) { return newEnv(ctx, o) }, carryOut)
}

func carryOut(ctx context.Context, e *env) (_ *Report, err error) {
	t := &trial{env: e, tenant: newTenant(e), report: newReport(e.options, e.database)}
	t.tenant.cookie, err = openSession(ctx, t.tenant.client, e.dashboard.URL(), e.team.people[0])
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer stop()
	go func() {
		defer close(ended)
		t.tenant.run(running)
	}()
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	t.report.Findings = e.Findings()
	return t.report, nil
}

type trial struct {
	*env
	tenant *tenant
	report *Report
}

func (t *trial) run(ctx context.Context) error {
	// The first seconds open connections and fill caches.
	if err := retry.Sleep(ctx, t.options.Idle); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	var attacks []*attack
	for _, a := range all() {
		if len(t.options.Only) == 0 || slices.Contains(t.options.Only, a.name) {
			attacks = append(attacks, a)
		}
	}
	for _, a := range attacks {
		t.Logf("%s: %s", a.name, a.does)
		r := Result{Attack: a.name}
		for r.Rounds < t.options.Rounds {
			round, err := t.round(ctx, a)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			r.add(round)
			if r.Ratio <= t.options.MaxRatio {
				break
			}
		}
		t.report.Attacks = append(t.report.Attacks, r)
		t.Logf("%s", r.String())
	}
	for _, a := range attacks {
		if a.last == nil {
			continue
		}
		if err := a.last(ctx, t.env); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// round measures the tenant without an attack, then under it, and then checks what the attack must not break.
func (t *trial) round(ctx context.Context, a *attack) (r Result, err error) {
	attacker, err := t.prepare(ctx, a)
	if err != nil {
		return r, err
	}
	before := len(t.Findings())
	t.tenant.next(false)
	if err := retry.Sleep(ctx, t.options.Idle); err != nil {
		return r, fmt.Errorf("measuring without an attack: %w", err)
	}
	idle := t.tenant.next(a.patient)
	tally, err := attacker.attack(ctx, a, t.env)
	if err != nil {
		return r, err
	}
	// Failures count until the backlog of the attack is gone: overload must pass by itself.
	t.settle(ctx)
	if a.undo != nil {
		if err := a.undo(ctx, t.env); err != nil {
			return r, err
		}
	}
	struck := t.tenant.next(false)
	idle.wait()
	struck.wait()
	if a.check != nil {
		if err := a.check(ctx, t.env, tally); err != nil {
			return r, err
		}
	}
	t.report.idle.add(idle)
	r = newResult(a, t.report.idle.with(idle), struck, tally)
	r.Peaks = t.peaks(a.name)
	r.Findings = t.Findings()[before:] // Those of peaks too.
	return r, nil
}

// prepare brings processes and database into the state in which the attack starts, and starts the attacker.
func (t *trial) prepare(ctx context.Context, a *attack) (*attackerProcess, error) {
	if err := t.replaceProcesses(ctx); err != nil {
		return nil, err
	}
	if a.prepare != nil {
		if err := a.prepare(ctx, t.env); err != nil {
			return nil, err
		}
	}
	attacker, err := t.startAttacker(ctx, a)
	if err != nil {
		return nil, err
	}
	return attacker, t.resetPeaks()
}

// settle waits until the workers have received every upload. An upload that they cannot store yet may still wait for
// its redelivery.
func (t *trial) settle(ctx context.Context) {
	const timeout, interval = 30 * time.Second, 50 * time.Millisecond
	err := harness.Await(ctx, timeout, interval, func(ctx context.Context) error {
		info, err := t.service.Consumer(ctx)
		if err == nil && info.NumPending > 0 {
			err = fmt.Errorf("%d uploads wait for the workers", info.NumPending)
		}
		return err
	})
	if err != nil {
		t.Unexpected("the backlog did not end: %v", err)
	}
}
