package processes

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
	KillWorker     Kind = "kill worker"
	KillReceiver   Kind = "kill receiver"
	KillAPI        Kind = "kill API"
	KillQueue      Kind = "kill queue"
	KillDatabase   Kind = "kill database" // all processes of PostgreSQL
	KillPostmaster Kind = "kill postmaster"
	KillBackend    Kind = "kill backend"
	HaltWorker     Kind = "halt worker"
	AddToxic       Kind = "add toxic"
)

// Fault is one planned fault.
type Fault struct {
	At   time.Duration `json:"at_ns"` // from the start of the burst
	Kind Kind          `json:"kind"`
	// Target is the name of a process. For a toxic, Server is the server at the other end of its connections.
	Target string `json:"target"`
	Server string `json:"server,omitempty"`
	// For is the time until the restart or the removal of the toxic.
	For   time.Duration `json:"for_ns"`
	Toxic Toxic         `json:"toxic,omitzero"`
}

// target describes what the fault happens to. Faults of one target happen one after the other.
func (f *Fault) target() string {
	if f.Server != "" {
		return f.Target + " to " + f.Server
	}
	return f.Target
}

func (f *Fault) String() string {
	kind := string(f.Kind)
	if f.Kind == AddToxic {
		kind = f.Toxic.String()
	}
	return fmt.Sprintf("%7.1fs  %-20s %-28s for %.1fs", f.At.Seconds(), f.target(), kind, f.For.Seconds())
}

// Plan is the schedule of faults.
type Plan []Fault

// planner draws a random plan.
type planner struct {
	Options
	rng  *rand.Rand
	plan Plan
}

// NewPlan draws the plan of a trial. The same options give the same plan.
func NewPlan(o Options) Plan {
	p := &planner{
		Options: o,
		rng:     rand.New(rand.NewPCG(o.Seed, 2)), //nolint:gosec // The same seed must give the same plan.
	}
	p.spread(HaltWorker, p.halt) // First: no kill may target a suspended worker.
	p.spread(KillWorker, p.killWorker)
	p.spread(KillReceiver, p.on(receiver))
	p.spread(KillQueue, p.on(natsServer))
	for _, kind := range []Kind{KillDatabase, KillPostmaster, KillBackend} {
		p.spread(kind, p.on(databaseName))
	}
	p.spread(AddToxic, p.addToxic)
	p.spread(KillAPI, p.on(api))
	slices.SortStableFunc(p.plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p.plan
}

// The names of targets.
const (
	receiver     = "receiver"
	api          = "api"
	natsServer   = "nats-server"
	databaseName = "postgres"
)

func workerName(i int) string { return fmt.Sprintf("worker-%d", i+1) }

// spread draws the faults of a kind: one at a random time in each of equal parts of the middle of the burst.
func (p *planner) spread(kind Kind, draw func(i int, at time.Duration) Fault) {
	const first, last = 0.04, 0.92
	n := p.Faults[kind]
	for i := range n {
		part := (float64(i) + p.rng.Float64()) / float64(n)
		at := time.Duration(float64(p.Burst) * (first + part*(last-first)))
		f := draw(i, at)
		f.Kind, f.At = kind, at
		p.plan = append(p.plan, f)
	}
}

// outage draws how long a process stays dead: usually as long as a supervisor takes, sometimes much longer.
func (p *planner) outage() time.Duration {
	const usual, long, longPercent = 1500 * time.Millisecond, 6 * time.Second, 15
	longest := usual
	if p.rng.IntN(100) < longPercent {
		longest = min(long, p.Burst/8)
	}
	return time.Duration(p.rng.Int64N(int64(longest)))
}

func (p *planner) on(target string) func(int, time.Duration) Fault {
	return func(int, time.Duration) Fault { return Fault{Target: target, For: p.outage()} }
}

// halt suspends the last worker. Its connections get no toxics, because a toxic cannot be removed while a process does
// not read.
func (p *planner) halt(int, time.Duration) Fault {
	return Fault{Target: workerName(p.Workers - 1), For: p.Halt}
}

// killWorker kills one of the workers that are not suspended at that time.
func (p *planner) killWorker(_ int, at time.Duration) Fault {
	workers := p.Workers
	for _, f := range p.plan {
		if f.Kind == HaltWorker && at > f.At-time.Second && at < f.At+f.For+time.Second {
			workers = p.Workers - 1
		}
	}
	return Fault{Target: workerName(p.rng.IntN(workers)), For: p.outage()}
}

// addToxic takes types and directions in turn, on a connection of a worker, or of the receiver to NATS.
func (p *planner) addToxic(i int, _ time.Duration) Fault {
	toxic := toxics[i%len(toxics)]
	if i/len(toxics)%2 == 1 {
		toxic.Stream = "upstream"
	}
	shortest := p.MaxToxic / 4
	f := Fault{
		Target: receiver, Server: toQueue, Toxic: toxic,
		For: shortest + time.Duration(p.rng.Int64N(int64(p.MaxToxic-shortest))),
	}
	if i := p.rng.IntN(1 + len(servers)*(p.Workers-1)); i > 0 {
		f.Target, f.Server = workerName((i-1)/len(servers)), servers[i%len(servers)]
	}
	return f
}

// counts returns the number of faults of each kind in the plan.
func (p Plan) counts() Counts {
	counts := Counts{}
	for i := range p {
		counts[p[i].Kind]++
	}
	return counts
}

// Print writes the plan, one fault per line.
func (p Plan) Print(w io.Writer) error {
	for i := range p {
		if _, err := fmt.Fprintln(w, p[i].String()); err != nil {
			return fmt.Errorf("printing the plan: %w", err)
		}
	}
	return nil
}
