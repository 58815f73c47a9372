package processes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"roomsensor/internal/retry"
)

// Done is a fault that happened.
type Done struct {
	Fault
	Actual time.Duration `json:"actual_at_ns"` // from the start of the burst
	// InFlight is the number of messages that the workers held at that moment; -1 if it is unknown.
	InFlight int `json:"in_flight"`
}

// injector carries out a plan.
type injector struct {
	env     *env
	started time.Time

	mu   sync.Mutex
	done []Done
}

// run returns once every fault has happened and is over. Faults of the same target happen one after the other.
func (j *injector) run(ctx context.Context, plan Plan) {
	byTarget := map[string][]Fault{}
	for _, f := range plan {
		byTarget[f.target()] = append(byTarget[f.target()], f)
	}
	var group sync.WaitGroup
	for _, faults := range byTarget {
		group.Go(func() {
			for i := range faults {
				if retry.Sleep(ctx, time.Until(j.started.Add(faults[i].At))) != nil {
					return
				}
				j.inject(ctx, &faults[i])
			}
		})
	}
	group.Wait()
}

func (j *injector) inject(ctx context.Context, f *Fault) {
	inFlight := j.awaitInFlight(ctx, f)
	actual := time.Since(j.started)
	j.env.Logf("%s", f)
	if err := j.carryOut(ctx, f); err != nil {
		if ctx.Err() == nil {
			j.env.Unexpected("%s: %v", f, err)
		}
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, Done{*f, actual, inFlight})
}

// awaitInFlight waits up to 2 s until the workers hold messages, so that the fault interrupts work.
func (j *injector) awaitInFlight(ctx context.Context, f *Fault) int {
	const timeout, interval = 2 * time.Second, 10 * time.Millisecond
	inFlight := -1
	if f.Kind == AddToxic {
		return inFlight
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_ = retry.Until(ctx, interval, func(ctx context.Context) (bool, error) { // The fault happens in any case.
		if info, err := j.env.service.Consumer(ctx); err == nil {
			inFlight = info.NumAckPending
		}
		return inFlight > 0, nil
	})
	return inFlight
}

func (j *injector) carryOut(ctx context.Context, f *Fault) error {
	switch f.Kind {
	case KillWorker:
		return restart(ctx, f, j.env.processes[f.Target].program)
	case KillReceiver:
		return j.restartReceiver(ctx, f)
	case KillAPI:
		return restart(ctx, f, j.env.processes[f.Target].program)
	case KillQueue:
		return restart(ctx, f, j.env.queue)
	case KillDatabase, KillPostmaster:
		return j.restartDatabase(ctx, f)
	case KillBackend:
		return j.env.killBackend(ctx)
	case HaltWorker:
		return halt(ctx, f, j.env.processes[f.Target].program)
	case AddToxic:
		return disturb(ctx, f, j.env.processes[f.Target].proxies[f.Server])
	}
	return fmt.Errorf("unknown fault %q", f.Kind)
}

// restart kills a program and starts it again after the outage.
func restart(ctx context.Context, f *Fault, p *program) error {
	err := p.kill()
	_ = retry.Sleep(ctx, f.For)
	return errors.Join(err, p.start(ctx))
}

// restartReceiver shortens ack_wait again, because a receiver declares the consumer when it starts.
func (j *injector) restartReceiver(ctx context.Context, f *Fault) error {
	p := j.env.processes[f.Target]
	if err := restart(ctx, f, p.program); err != nil {
		return err
	}
	if err := p.WhenReady(ctx); err != nil {
		return err
	}
	return j.env.service.ShortenAckWait(ctx)
}

func (j *injector) restartDatabase(ctx context.Context, f *Fault) error {
	err := crash(ctx, j.env.database.options.DataDir, f.Kind == KillPostmaster)
	_ = retry.Sleep(ctx, f.For)
	return errors.Join(err, j.env.restartDatabase(ctx))
}

// halt suspends a process with SIGSTOP and resumes it.
func halt(ctx context.Context, f *Fault, p *program) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_ = retry.Sleep(ctx, f.For)
	return p.signal(syscall.SIGCONT)
}

// disturb adds a toxic to a proxy and removes it again.
func disturb(ctx context.Context, f *Fault, p *proxy) error {
	if err := p.addToxic(f.Toxic); err != nil {
		return err
	}
	_ = retry.Sleep(ctx, f.For)
	return p.removeToxic(f.Toxic) //nolint:contextcheck // Also after the trial was canceled.
}
