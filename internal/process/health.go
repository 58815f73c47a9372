package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/retry"
)

// A lost dependency is detected within probeInterval + probeTimeout + the first recheck delay + probeTimeout, which is
// 12 s and below the 20 s that deployments rely on. One failed probe alone changes nothing: a replica must not leave
// the load balancer because of one lost packet.
const (
	probeInterval = 5 * time.Second // between probes of a dependency that answers
	probeTimeout  = 3 * time.Second // for one probe
	lossAfter     = 2               // failures in a row
)

// recheck is the delay between probes of a dependency that does not answer. Its jitter spreads the probes of many
// replicas after an outage of the database.
var recheck = retry.Backoff{First: 250 * time.Millisecond, Max: 4 * time.Second}

// The reasons that need no probe.
var (
	errNotProbed = errors.New("was not checked yet")
	errStarting  = errors.New("is starting")
	errStopping  = errors.New("is shutting down")
)

// Missing is a dependency of the process that is unavailable, as /readyz reports it.
type Missing struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // a sentence without its subject
}

// Probe checks whether a dependency can be used. Its error should be an *UnavailableError, whose text stays the same
// while the cause varies, so that an outage is logged once.
type Probe func(ctx context.Context) error

// UnavailableError says why a dependency cannot be used.
type UnavailableError struct {
	Reason string // a sentence without its subject, for /readyz
	Cause  error  // for the log only; may be nil
}

func (u *UnavailableError) Error() string { return u.Reason }
func (u *UnavailableError) Unwrap() error { return u.Cause }

// Health knows whether a process is ready. It probes the dependencies in the background, so that /readyz is cheap and
// cannot be used to trigger probes.
type Health struct {
	log    zerolog.Logger
	checks []*check

	mu      sync.Mutex
	process error         // nil while the process itself serves
	changed chan struct{} // closed at every change
}

// check is the state of one dependency. The mutex of Health guards err and failures.
type check struct {
	name  string
	probe Probe

	err      error // nil while the dependency is available
	failures int   // in a row
}

// NewHealth returns the health of a process that is starting.
func NewHealth(log zerolog.Logger) *Health {
	return &Health{log: log, process: errStarting, changed: make(chan struct{})}
}

// Need adds a dependency. It must be called before Run.
func (h *Health) Need(name string, probe Probe) {
	h.checks = append(h.checks, &check{name: name, probe: probe, err: errNotProbed})
}

// Needed returns the names of all dependencies, available or not.
func (h *Health) Needed() []string {
	names := make([]string, len(h.checks))
	for i, c := range h.checks {
		names[i] = c.name
	}
	return names
}

// Serving marks the process as serving; it is ready while all dependencies are available.
func (h *Health) Serving() { h.setProcess(nil) }

// Stopping marks the process as shutting down, permanently.
func (h *Health) Stopping() { h.setProcess(errStopping) }

func (h *Health) setProcess(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.process, errStopping) {
		return
	}
	h.process = err
	h.announce()
}

// Missing lists why the process is not ready. It is empty when the process is ready.
func (h *Health) Missing() []Missing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missing()
}

func (h *Health) missing() (list []Missing) {
	if h.process != nil {
		list = append(list, Missing{"process", h.process.Error()})
	}
	for _, c := range h.checks {
		if c.err != nil {
			list = append(list, Missing{c.name, c.err.Error()})
		}
	}
	return list
}

// available returns whether each dependency is available, by name.
func (h *Health) available() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	available := make(map[string]bool, len(h.checks))
	for _, c := range h.checks {
		available[c.name] = c.err == nil
	}
	return available
}

// Await waits until all dependencies are available. Its error is that of ctx.
func (h *Health) Await(ctx context.Context) error {
	return h.await(ctx, func() bool {
		for _, c := range h.checks {
			if c.err != nil {
				return false
			}
		}
		return true
	})
}

// AwaitReady waits until the process is ready. Its error is that of ctx.
func (h *Health) AwaitReady(ctx context.Context) error {
	return h.await(ctx, func() bool { return len(h.missing()) == 0 })
}

func (h *Health) await(ctx context.Context, reached func() bool) error {
	for {
		h.mu.Lock()
		done, changed := reached(), h.changed
		h.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Run probes the dependencies until ctx ends.
func (h *Health) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, c := range h.checks {
		group.Go(func() { h.watch(ctx, c) })
	}
	group.Wait()
}

// watch probes one dependency until ctx ends.
func (h *Health) watch(ctx context.Context, c *check) {
	for ctx.Err() == nil {
		err := probe(ctx, c.probe)
		if ctx.Err() != nil {
			return // The probe failed because the process stops.
		}
		if retry.Sleep(ctx, h.record(c, err)) != nil {
			return
		}
	}
}

func probe(ctx context.Context, p Probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p(ctx)
}

// record stores the result of a probe and returns the delay before the next one.
func (h *Health) record(c *check, err error) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		c.failures = 0
		h.set(c, nil)
		return probeInterval
	}
	c.failures++
	if c.err != nil || c.failures >= lossAfter {
		h.set(c, err)
	}
	return recheck.Delay(c.failures - 1)
}

// set changes the state of a dependency and logs the change. The caller holds the mutex.
func (h *Health) set(c *check, err error) {
	if reason(c.err) == reason(err) || errors.Is(h.process, errStopping) {
		return // A dependency that the shutdown closes is not lost.
	}
	c.err = err
	if err == nil {
		h.log.Info().Str("dependency", c.name).Msg("dependency available")
	} else {
		h.log.Warn().Str("dependency", c.name).Str("reason", err.Error()).AnErr("error", errors.Unwrap(err)).
			Msg("dependency unavailable")
	}
	h.announce()
}

// reason is the text of an error; an empty one means that there is no error.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// announce wakes up all waiters. The caller holds the mutex.
func (h *Health) announce() {
	close(h.changed)
	h.changed = make(chan struct{})
}
