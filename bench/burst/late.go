package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/procs"
)

// tryBurst lets the late devices come back through the receiver, while others go on.
func (g *ground) tryBurst(ctx context.Context, l *load, o *options) (result burstResult, err error) {
	g.say("late burst with %d workers", o.Attending)
	s, err := g.newSite(ctx, l, o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b := &burst{site: s, load: l, options: o}
	if err := b.start(ctx); err != nil {
		return result, err
	}
	defer b.close()
	if err := b.run(ctx); err != nil {
		return result, err
	}
	return b.result(ctx)
}

// burst is the first part of the trial.
type burst struct {
	*site
	load    *load
	options *options

	api, receiver     *procs.Process
	workers           []*procs.Process
	lateGate, newGate *gateway
	fresh             *fresh
	judge             *judge

	calm, began, accepted, drained time.Time
	stall                          time.Duration
}

func (b *burst) start(ctx context.Context) (err error) {
	var apiURL, receiverURL string
	if b.api, apiURL, err = b.listener(ctx, "api", "--api-addr", "api"); err != nil {
		return err
	}
	if b.receiver, receiverURL, err = b.listener(ctx, "receiver", "--ingest-addr", "ingest", "--no-worker"); err != nil {
		return err
	}
	for n := range b.options.Attending {
		w, err := b.worker(ctx, n)
		if err != nil {
			return err
		}
		b.workers = append(b.workers, w)
	}
	half := len(b.readKeys) / 2
	b.lateGate = newGateway(receiverURL, b.ingestKey, b.options.Senders)
	b.newGate = newGateway(receiverURL, b.ingestKey, b.options.Senders)
	b.push(func() error { b.lateGate.close(); b.newGate.close(); return nil })
	watcher := newReader(apiURL, b.readKeys[:half])
	b.push(func() error { watcher.close(); return nil })
	b.fresh = b.newFresh(b.options, b.newGate, watcher)
	b.judge, err = newJudge(ctx, b.url, newReader(apiURL, b.readKeys[half:]))
	return err
}

func (b *burst) close() {
	if b.judge != nil {
		b.judge.close()
	}
}

// run has the fresh devices alone at first, then the late ones too, until all of it is stored.
func (b *burst) run(ctx context.Context) error {
	stop := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	b.calm = time.Now()
	group.Go(func() error { return b.fresh.run(ctx, stop) })
	group.Go(func() error { return b.judge.watch(ctx, stop) })
	group.Go(func() error {
		defer close(stop)
		return b.late(ctx)
	})
	return group.Wait() //nolint:wrapcheck // Wrapped where it happened.
}

func (b *burst) late(ctx context.Context) (err error) {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting for calm: %w", ctx.Err())
	case <-time.After(b.options.Calm):
	}
	b.began = time.Now()
	if err := b.lateGate.postAll(ctx, b.load.interleaved(), b.options.Senders); err != nil {
		return err
	}
	b.accepted = time.Now()
	_, b.stall, err = b.drain(ctx)
	b.drained = time.Now()
	return err
}

func (b *burst) result(ctx context.Context) (r burstResult, err error) {
	r = burstResult{
		Accepted: inSeconds(b.accepted.Sub(b.began)), Drained: inSeconds(b.drained.Sub(b.began)),
		Rate:   int(float64(b.load.readings) / b.drained.Sub(b.began).Seconds()),
		Before: b.fresh.spread(b.calm, b.began),
		During: b.fresh.spread(b.began, b.accepted), After: b.fresh.spread(b.accepted, b.drained),
		Refused: b.lateGate.refused.Load() + b.newGate.refused.Load(),
		Looks:   b.judge.looks, WrongStates: b.judge.wrong,
	}
	if r.Verdict, err = b.judge.compare(ctx, b.site.late, b.load); err != nil {
		return r, err
	}
	for _, w := range b.workers {
		peak, err := w.PeakMemory()
		if err != nil {
			return r, err
		}
		r.WorkerPeak = max(r.WorkerPeak, mib(peak))
	}
	peak, err := b.receiver.PeakMemory()
	r.ReceiverPeak = mib(peak)
	return r, err
}
