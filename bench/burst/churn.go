package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/procs"
)

// churnEvery is how often a worker comes and another one goes.
const churnEvery = time.Second

// tryChurn lets workers join and leave for as long as there is a backlog.
func (g *ground) tryChurn(ctx context.Context, l *load, o *options) (r churnResult, err error) {
	g.say("the same backlog with workers that come and go")
	s, err := g.newSite(ctx, l, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fill(ctx, l); err != nil {
		return r, err
	}
	c := &churn{site: s, over: make(chan struct{})}
	if err := c.join(ctx); err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	last, stall, err := s.drain(ctx)
	close(c.over)
	if err := errors.Join(err, <-ended); err != nil {
		return r, err
	}
	r = churnResult{
		Joined: c.joined, Left: c.left, SlowestExit: inSeconds(c.slowest), Stall: inSeconds(stall),
		Again: int(last.delivered - last.stored), //nolint:gosec // Some thousands.
	}
	return r, s.settle(ctx, l, &r.Verdict)
}

// churn is workers of which the oldest leaves whenever a new one has come.
type churn struct {
	*site
	over         chan struct{}
	workers      []*procs.Process
	joined, left int
	slowest      time.Duration
}

func (c *churn) run(ctx context.Context) error {
	ticker := time.NewTicker(churnEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("exchanging workers: %w", ctx.Err())
		case <-ticker.C:
		}
		if err := errors.Join(c.join(ctx), c.leave()); err != nil {
			return err
		}
	}
}

func (c *churn) join(ctx context.Context) error {
	w, err := c.worker(ctx, c.joined)
	c.joined++
	c.workers = append(c.workers, w)
	return err
}

func (c *churn) leave() error {
	took, err := c.workers[0].Stop(stopWithin)
	c.workers = c.workers[1:]
	c.left++
	c.slowest = max(c.slowest, took)
	return err
}
