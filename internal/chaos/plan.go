package chaos

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	KillWorker   Kind = "kill worker"
	KillReceiver Kind = "kill receiver"
	KillQueue    Kind = "kill queue"
	KillDatabase Kind = "kill database" // all processes of PostgreSQL
	KillMaster   Kind = "kill postmaster"
	KillBackend  Kind = "kill backend"
	HaltWorker   Kind = "halt worker"
	Poison       Kind = "poison"
)

// Fault is one thing that goes wrong.
type Fault struct {
	At   time.Duration `json:"at_ns"` // from the start of the burst
	Kind Kind          `json:"kind"`
	// Target is the process that it happens to, and Line the one of its lines, if it does not happen to the process.
	Target string `json:"target"`
	Line   string `json:"line,omitempty"`
	// For is how long it lasts: until a restart, or until the line heals.
	For   time.Duration `json:"for_ns"`
	Toxic Toxic         `json:"toxic,omitzero"`
}

// lane is what the fault happens to, in words. Faults of one lane wait for one another, those of several lanes do not.
func (f *Fault) lane() string {
	if f.Line != "" {
		return f.Target + " to " + f.Line
	}
	return f.Target
}

func (f *Fault) String() string {
	what := string(f.Kind)
	if f.Kind == Poison {
		what = f.Toxic.String()
	}
	return fmt.Sprintf("%7.1fs  %-20s %-28s for %.1fs", f.At.Seconds(), f.lane(), what, f.For.Seconds())
}

// Plan is the schedule of a trial.
type Plan []Fault

// planner draws a plan.
type planner struct {
	Options
	dice *rand.Rand
	plan Plan
}

// NewPlan draws the plan of a trial: the same at the same seed.
func NewPlan(o Options) Plan {
	if o.Plan != nil {
		return o.Plan
	}
	p := &planner{
		Options: o,
		dice:    rand.New(rand.NewPCG(o.Seed, 2)), //nolint:gosec // It must be the same at the same seed.
	}
	p.spread(o.Faults.Halts, p.halt) // First: no other fault of its lane may fall into one.
	p.spread(o.Faults.WorkerKills, p.killWorker)
	p.spread(o.Faults.ReceiverKills, p.on(KillReceiver, receiver))
	p.spread(o.Faults.QueueKills, p.on(KillQueue, natsServer))
	p.spread(o.Faults.DatabaseKills, p.killDatabase)
	p.spread(o.Faults.BackendKills, p.on(KillBackend, databaseName))
	p.spread(o.Faults.Poisons, p.poison)
	slices.SortStableFunc(p.plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p.plan
}

// The names of what faults happen to.
const (
	receiver     = "receiver"
	natsServer   = "nats-server"
	databaseName = "postgres"
)

func workerName(i int) string { return fmt.Sprintf("worker-%d", i+1) }

// spread gives n faults their times: one in each of n equal parts of the middle of the burst, anywhere in its part.
func (p *planner) spread(n int, draw func(i int, at time.Duration) Fault) {
	const first, last = 0.04, 0.92
	for i := range n {
		part := (float64(i) + p.dice.Float64()) / float64(n)
		at := time.Duration(float64(p.Burst) * (first + part*(last-first)))
		f := draw(i, at)
		f.At = at
		p.plan = append(p.plan, f)
	}
}

// outage is how long something stays dead: most often as long as a supervisor takes, at times much longer.
func (p *planner) outage() time.Duration {
	const usual, long, longPercent = 1500 * time.Millisecond, 6 * time.Second, 15
	most := usual
	if p.dice.IntN(100) < longPercent {
		most = min(long, p.Burst/8)
	}
	return time.Duration(p.dice.Int64N(int64(most)))
}

func (p *planner) on(kind Kind, target string) func(int, time.Duration) Fault {
	return func(int, time.Duration) Fault { return Fault{Kind: kind, Target: target, For: p.outage()} }
}

// killDatabase takes both ways in turn.
func (p *planner) killDatabase(i int, _ time.Duration) Fault {
	kind := KillDatabase
	if i%2 == 1 {
		kind = KillMaster
	}
	return Fault{Kind: kind, Target: databaseName, For: p.outage()}
}

// halt takes the last worker, whose lines are never spoilt: a line to a process that does not read cannot be healed.
func (p *planner) halt(int, time.Duration) Fault {
	return Fault{Kind: HaltWorker, Target: workerName(p.Workers - 1), For: p.Halt}
}

// killWorker takes one of the workers that are not halted then.
func (p *planner) killWorker(_ int, at time.Duration) Fault {
	workers := p.Workers
	for _, f := range p.plan {
		if f.Kind == HaltWorker && at > f.At-time.Second && at < f.At+f.For+time.Second {
			workers = p.Workers - 1
		}
	}
	return Fault{Kind: KillWorker, Target: workerName(p.dice.IntN(workers)), For: p.outage()}
}

// poison takes kinds and directions in turn, on any line of a worker or that of the receiver to the queue.
func (p *planner) poison(i int, _ time.Duration) Fault {
	toxic := toxics[i%len(toxics)]
	toxic.Upstream = i/len(toxics)%2 == 1
	least := p.Poison / 4
	f := Fault{
		Kind: Poison, Target: receiver, Line: toQueue, Toxic: toxic,
		For: least + time.Duration(p.dice.Int64N(int64(p.Poison-least))),
	}
	if line := p.dice.IntN(1 + len(lines)*(p.Workers-1)); line > 0 {
		f.Target, f.Line = workerName((line-1)/len(lines)), lines[line%len(lines)]
	}
	return f
}

// counts tells how often each kind is in the plan.
func (p Plan) counts() (c Counts) {
	for i := range p {
		c.add(p[i].Kind)
	}
	return c
}

// Print writes the plan for people.
func (p Plan) Print(w io.Writer) error {
	for i := range p {
		if _, err := fmt.Fprintln(w, p[i].String()); err != nil {
			return fmt.Errorf("printing the plan: %w", err)
		}
	}
	return nil
}
