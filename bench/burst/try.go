package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/procs"
)

// try makes every part of the trial.
func try(ctx context.Context, g *ground, o options) (*report, error) {
	until := time.Now().UTC().Truncate(time.Hour)
	l := makeLoad(&o, until)
	r := newReport(o, l)
	g.say("%d devices send %d readings in %d uploads, %d MB", o.Devices, l.readings, len(l.interleaved()), l.bytes/1e6)
	var err error
	if r.Burst, err = g.tryBurst(ctx, l, &o); err != nil {
		return nil, fmt.Errorf("trying a late burst: %w", err)
	}
	for _, n := range o.Workers {
		result, err := g.tryWorkers(ctx, l, &o, n)
		if err != nil {
			return nil, fmt.Errorf("trying %d workers: %w", n, err)
		}
		r.Scaling = append(r.Scaling, result)
	}
	if r.Churn, err = g.tryChurn(ctx, l, &o); err != nil {
		return nil, fmt.Errorf("trying workers that come and go: %w", err)
	}
	return r, nil
}

// tryWorkers measures how fast some workers settle the same backlog.
func (g *ground) tryWorkers(ctx context.Context, l *load, o *options, n int) (r workersResult, err error) {
	g.say("the same backlog with %d workers", n)
	s, err := g.newSite(ctx, l, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fill(ctx, l); err != nil {
		return r, err
	}
	group, starting := errgroup.WithContext(ctx)
	workers := make([]*procs.Process, n)
	began := time.Now()
	for i := range n {
		group.Go(func() (err error) {
			workers[i], err = s.worker(starting, i)
			return err
		})
	}
	last, stall, err := s.drain(ctx)
	took := time.Since(began)
	if err := errors.Join(err, group.Wait()); err != nil {
		return r, err
	}
	r = workersResult{
		Workers: n, Seconds: inSeconds(took), Rate: int(float64(l.readings) / took.Seconds()),
		Stall: inSeconds(stall), Again: int(last.delivered - last.stored), //nolint:gosec // Some thousands.
	}
	for _, w := range workers {
		peak, err := w.PeakMemory()
		if err != nil {
			return r, err
		}
		r.Peak = max(r.Peak, mib(peak))
	}
	return r, s.settle(ctx, l, &r.Verdict)
}

// settle compares what is stored with what was sent.
func (s *site) settle(ctx context.Context, l *load, v *verdict) error {
	j, err := newJudge(ctx, s.url, newReader("", nil))
	if err != nil {
		return err
	}
	defer j.close()
	*v, err = j.compare(ctx, s.late, l)
	return err
}

func spread(times []time.Duration) spreadResult {
	slices.Sort(times)
	at := func(p float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return inSeconds(times[min(len(times)-1, int(p*float64(len(times))))])
	}
	return spreadResult{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

func inSeconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func mib(bytes int64) float64 { return float64(bytes>>10) / (1 << 10) }

func cores() int { return runtime.NumCPU() }
