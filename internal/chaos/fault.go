package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"roomsensor/internal/chaos/trial"
)

// Done is a fault that happened.
type Done struct {
	Fault
	Really time.Duration `json:"really_at_ns"` // from the start of the burst
	// InFlight is how many messages the workers held at that moment; -1 where nobody could say.
	InFlight int `json:"in_flight"`
}

// injector carries out a plan.
type injector struct {
	world   *world
	started time.Time

	mu   sync.Mutex
	done []Done
}

// run returns once every fault has happened and is over.
func (j *injector) run(ctx context.Context, plan Plan) {
	lanes := map[string][]Fault{}
	for _, f := range plan {
		lanes[f.lane()] = append(lanes[f.lane()], f)
	}
	var group sync.WaitGroup
	for _, faults := range lanes {
		group.Go(func() {
			for i := range faults {
				if trial.Pause(ctx, time.Until(j.started.Add(faults[i].At))) != nil {
					return
				}
				j.inject(ctx, &faults[i])
			}
		})
	}
	group.Wait()
}

func (j *injector) inject(ctx context.Context, f *Fault) {
	inFlight := j.aim(ctx, f)
	really := time.Since(j.started)
	j.world.Say("%s", f)
	if err := j.carryOut(ctx, f); err != nil {
		if ctx.Err() == nil {
			j.world.Unexpected("%s: %v", f, err)
		}
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, Done{*f, really, inFlight})
}

// aim waits a moment until workers hold messages, so that a fault hits work and not rest.
func (j *injector) aim(ctx context.Context, f *Fault) int {
	const patience, look = 2 * time.Second, 10 * time.Millisecond
	if f.Kind == Poison {
		return -1
	}
	inFlight := -1
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		info, err := j.world.trial.Consumer(ctx)
		if err == nil {
			inFlight = info.NumAckPending
		}
		if inFlight > 0 || trial.Pause(ctx, look) != nil {
			break
		}
	}
	return inFlight
}

var errNotRunning = errors.New("it does not run")

func (j *injector) carryOut(ctx context.Context, f *Fault) error {
	switch f.Kind {
	case KillWorker:
		return kill(ctx, f, j.world.services[f.Target].program)
	case KillReceiver:
		return j.killReceiver(ctx, f)
	case KillQueue:
		return kill(ctx, f, j.world.queue.program)
	case KillDatabase, KillMaster:
		return j.killDatabase(ctx, f)
	case KillBackend:
		return j.world.killBackend(ctx)
	case HaltWorker:
		return halt(ctx, f, j.world.services[f.Target].program)
	case Poison:
		return poison(ctx, f, j.world.services[f.Target].lines[f.Line])
	}
	return fmt.Errorf("there is no fault %q", f.Kind)
}

func kill(ctx context.Context, f *Fault, p *program) (err error) {
	if !p.kill() {
		err = errNotRunning
	}
	_ = trial.Pause(ctx, f.For)
	return errors.Join(err, p.start(ctx))
}

// killReceiver narrows the consumer again, which a receiver declares when it starts.
func (j *injector) killReceiver(ctx context.Context, f *Fault) error {
	s := j.world.services[f.Target]
	if err := kill(ctx, f, s.program); err != nil {
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	return j.world.trial.Narrow(ctx)
}

func (j *injector) killDatabase(ctx context.Context, f *Fault) error {
	err := j.world.database.crash(ctx, f.Kind == KillMaster)
	_ = trial.Pause(ctx, f.For)
	return errors.Join(err, j.world.restartDatabase(ctx))
}

func halt(ctx context.Context, f *Fault, p *program) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_ = trial.Pause(ctx, f.For)
	return p.signal(syscall.SIGCONT)
}

func poison(ctx context.Context, f *Fault, l *line) error {
	if err := l.poison(f.Toxic); err != nil {
		return err
	}
	_ = trial.Pause(ctx, f.For)
	return l.heal(f.Toxic) //nolint:contextcheck // Also after the trial was told to end.
}

// counts tells how often each kind happened.
func (j *injector) counts() (c Counts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.done {
		c.add(j.done[i].Kind)
	}
	return c
}

// hits tells how many kills and halts met messages in flight.
func (j *injector) hits() (met, all int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.done {
		if j.done[i].Kind == Poison {
			continue
		}
		all++
		if j.done[i].InFlight > 0 {
			met++
		}
	}
	return met, all
}
