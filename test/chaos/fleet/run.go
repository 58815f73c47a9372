package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"roomsensor/test/harness"
)

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return harness.Run(ctx, func(ctx context.Context) (*env, error) { return newEnv(ctx, o) },
		func(ctx context.Context, e *env) (*Report, error) { return e.run(ctx) })
}

func (e *env) run(ctx context.Context) (*Report, error) {
	l := e.newLoad()
	defer l.close()
	e.Logf("asking for the devices of each team until it is answered")
	warmUp, err := l.warmUp(ctx)
	if err != nil {
		return nil, err
	}
	e.Logf("all teams were answered after %s", harness.Seconds(warmUp))
	s, err := l.newSampler(ctx)
	if err != nil {
		return nil, err
	}
	r := newReport(e)
	r.WarmUp = warmUp
	e.Logf("%d devices upload for %s", e.options.Devices, e.options.Duration)
	sampling, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { s.run(sampling) })
	err = l.run(ctx, s.start)
	r.Sent = time.Since(s.start)
	if err == nil {
		e.Logf("all uploads are sent")
		e.settle(ctx)
		r.Settled = time.Since(s.start) - r.Sent
	}
	stop()
	group.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if err := s.take(ctx); err != nil { // What the whole trial used.
		return nil, err
	}
	if n := l.abandoned.Load(); n > 0 {
		e.Unexpected("%d uploads were never confirmed", n)
	}
	if r.Verdict, err = e.verify(ctx); err != nil {
		return nil, err
	}
	r.finish(s)
	return r, nil
}

// settle waits until everything is committed. A backlog that remains makes the trial fail, with all that was measured.
func (e *env) settle(ctx context.Context) {
	if _, err := e.service.AwaitSettled(ctx); err != nil {
		e.Unexpected("the workers did not store everything in time: %v", err)
	}
}

// finish adds what was measured.
func (r *Report) finish(s *sampler) {
	r.Samples, r.Latencies, r.Accepted = s.samples, s.recorder.all(), s.load.accepted.Load()
	r.Failures, r.Failed, r.Findings = s.recorder.failures, s.recorder.failed, s.Findings()
	r.Registered, r.Late, r.Refused = s.registered, s.lateTook, s.refused.Load()
	r.PerDeviceDay = perDeviceDay(&s.samples[len(s.samples)-1], r.Accepted, r.Verdict.Readings)
}
