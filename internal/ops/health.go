package ops

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"
)

// The reasons that need no probe.
var (
	errNotProbed = errors.New("was not looked at yet")
	errStarting  = errors.New("is starting")
	errStopping  = errors.New("is shutting down")
)

// Missing is something that a process needs and does not have.
type Missing struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Probe asks something that a process needs whether it can be used. Its error
// should be UnavailableError, whose text stays the same while its cause does.
type Probe func(ctx context.Context) error

// UnavailableError says why something cannot be used.
type UnavailableError struct {
	Reason string // a sentence without its subject, for /readyz
	Cause  error  // for the log alone; may be nil
}

func (u *UnavailableError) Error() string { return u.Reason }
func (u *UnavailableError) Unwrap() error { return u.Cause }

// Health knows whether a process can serve. The probes run in the background,
// so that asking costs nothing and tells no stranger's clock.
type Health struct {
	log    zerolog.Logger
	checks []*check

	mu      sync.Mutex
	process error         // nil while the process itself could serve
	changed chan struct{} // closed at every change
}

// check is one thing that is needed; its fields below the line are guarded by
// the mutex of Health.
type check struct {
	name  string
	probe Probe

	err      error // nil while it is there
	failures int   // in a row
}

// NewHealth makes the health of a process that is starting.
func NewHealth(log zerolog.Logger) *Health {
	return &Health{log: log, process: errStarting, changed: make(chan struct{})}
}

// Need adds something that the process needs. It must be called before Run.
func (h *Health) Need(name string, probe Probe) {
	h.checks = append(h.checks, &check{name: name, probe: probe, err: errNotProbed})
}

// Serving says that the process serves from now on; what it needs decides
// whether it is ready.
func (h *Health) Serving() { h.setProcess(nil) }

// Stopping says that the process will serve no more, whatever it needs. It is final.
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

// Missing lists why the process is not ready; empty when it is.
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

// Await waits until everything that is needed answers. Its error is that of ctx.
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
