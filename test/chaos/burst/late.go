package burst

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/retry"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// phase is the first phase: the late devices send through the receiver while other devices continue.
type phase struct {
	*env
	receiver *proctest.Service
	late     *harness.Receiver
	fresh    *fresh
	snapshot *snapshotChecker
	refused  atomic.Int64 // 503 answers to late devices

	started, burst, accepted, drained time.Time
}

// runBurst measures the late burst.
func (t *trial) runBurst(ctx context.Context) (result LateResult, err error) {
	t.Logf("sending the late burst with %d workers", t.options.BurstWorkers)
	e, err := t.newEnv(ctx, "burst")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx, err != nil)) }()
	p := &phase{env: e}
	if err := p.start(ctx); err != nil {
		return result, err
	}
	stop := make(chan struct{})
	group, running := errgroup.WithContext(ctx)
	p.started = time.Now()
	group.Go(func() error { return p.fresh.run(running, stop) })
	group.Go(func() error { return p.snapshot.run(running, stop) })
	group.Go(func() error {
		defer close(stop)
		return p.sendLate(running)
	})
	if err := group.Wait(); err != nil {
		return result, err //nolint:wrapcheck // Wrapped by the functions.
	}
	return p.result(ctx)
}

func (p *phase) start(ctx context.Context) error {
	api, err := p.env.start(ctx, "api", "api")
	if err != nil {
		return err
	}
	if p.receiver, err = p.env.start(ctx, "receiver", "ingest", "--no-worker"); err != nil {
		return err
	}
	if err := p.startWorkers(ctx, p.trial.options.BurstWorkers); err != nil {
		return err
	}
	half := len(p.readKeys) / 2
	p.late = harness.NewReceiver(p.receiver.Address, p.trial.options.Senders)
	others := harness.NewReceiver(p.receiver.Address, p.trial.options.Senders)
	watched, err := newReader(api.Address, p.readKeys[:half])
	if err != nil {
		return err
	}
	checked, err := newReader(api.Address, p.readKeys[half:])
	if err != nil {
		return err
	}
	p.OnClose(func(context.Context) error {
		p.late.Close()
		others.Close()
		watched.close()
		checked.close()
		return nil
	})
	p.fresh = p.newFresh(others, watched)
	p.snapshot = &snapshotChecker{service: p.service, reader: checked}
	return nil
}

// sendLate sends the load after the calm and waits until it is stored.
func (p *phase) sendLate(ctx context.Context) error {
	if err := retry.Sleep(ctx, p.trial.options.Calm); err != nil {
		return fmt.Errorf("waiting for the burst: %w", err)
	}
	p.burst = time.Now()
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(p.trial.options.Senders)
	for _, r := range p.trial.load.requests {
		group.Go(func() error {
			refused, err := p.late.PostUntilStored(sending, p.ingestKey, r.Body())
			p.refused.Add(int64(refused))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // Wrapped by Post.
	}
	p.accepted = time.Now()
	_, err := p.service.AwaitSettled(ctx)
	p.drained = time.Now()
	return err
}

func (p *phase) result(ctx context.Context) (r LateResult, err error) {
	took := p.drained.Sub(p.burst)
	r = LateResult{
		Accepted: seconds(p.accepted.Sub(p.burst)), Drained: seconds(took),
		Rate:   int(float64(p.trial.load.readings) / took.Seconds()),
		Before: p.fresh.result(p.started, p.burst), During: p.fresh.result(p.burst, p.accepted),
		After:   p.fresh.result(p.accepted, p.drained),
		Refused: p.refused.Load() + p.fresh.refused.Load(), Checks: p.snapshot.checks, WrongStates: p.snapshot.wrong,
	}
	if r.WorkerPeak, err = p.workerPeak(); err != nil {
		return r, err
	}
	if r.ReceiverPeak, err = peakMiB(p.receiver); err != nil {
		return r, err
	}
	r.Verdict, err = p.verify(ctx)
	return r, err
}
