package ops

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// A loss is noticed within interval + timeout + recheck + timeout, which is
// 12 s, and so within the 20 s that deployments count on. One failed probe
// alone turns nothing: a replica must not leave the service for one lost packet.
const (
	interval     = 5 * time.Second        // between probes of what answers
	probeTimeout = 3 * time.Second        // for one probe
	firstRecheck = 250 * time.Millisecond // after the first failure
	lastRecheck  = 4 * time.Second        // after many
	lossAfter    = 2                      // failures in a row
)

// Run probes until ctx ends.
func (h *Health) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, c := range h.checks {
		group.Go(func() { h.watch(ctx, c) })
	}
	group.Wait()
}

func (h *Health) watch(ctx context.Context, c *check) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := probe(ctx, c.probe)
		if ctx.Err() != nil {
			return // The probe failed of it.
		}
		timer.Reset(h.note(c, err))
	}
}

func probe(ctx context.Context, p Probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p(ctx)
}

// note keeps the result of a probe, logs it where it says something new, and
// tells how long to wait for the next.
func (h *Health) note(c *check, err error) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		c.failures = 0
		h.set(c, nil)
		return interval
	}
	c.failures++
	if c.err != nil || c.failures >= lossAfter {
		h.set(c, err)
	}
	return recheck(c.failures)
}

// set changes the state of a check; the mutex is held.
func (h *Health) set(c *check, err error) {
	if text(c.err) == text(err) || errors.Is(h.process, errStopping) {
		return // What is closed in order at the end is no loss.
	}
	c.err = err
	if err == nil {
		h.log.Info().Str("need", c.name).Msg(c.name + " answers")
	} else {
		h.log.Warn().Str("need", c.name).AnErr("cause", errors.Unwrap(err)).Msg(c.name + " " + err.Error())
	}
	h.announce()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (h *Health) announce() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// recheck grows with every failure and is jittered, so that many processes do
// not come back to a database in the same moment.
func recheck(failures int) time.Duration {
	pause := min(firstRecheck<<min(failures-1, 8), lastRecheck)
	return pause/2 + rand.N(pause/2) //nolint:gosec // A pause is no secret.
}
