package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/test/harness"
	"roomsensor/test/promtest"
)

// The states of an alert.
const (
	inactive = "inactive"
	pending  = "pending"
	firing   = "firing"
)

// watcher reads the states of all alerts, and notes when each fired and cleared.
type watcher struct {
	prometheus *promtest.Prometheus

	mu     sync.Mutex
	states map[string]string
	fired  map[string]time.Time // first since reset
	ended  map[string]time.Time // last since reset
	err    error                // of the last read
}

func (w *watcher) run(ctx context.Context) { retry.Every(ctx, pollInterval, w.read) }

func (w *watcher) read(ctx context.Context) {
	states, err := w.prometheus.States(ctx)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		return
	}
	for name, state := range states {
		if state == firing && w.fired[name].IsZero() {
			w.fired[name] = now
		}
		if state != firing && w.states[name] == firing {
			w.ended[name] = now
		}
	}
	w.states = states
}

// reset forgets what fired before.
func (w *watcher) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired, w.ended = map[string]time.Time{}, map[string]time.Time{}
}

// awaitQuiet waits until no alert has been pending or firing for quietTime.
func (w *watcher) awaitQuiet(ctx context.Context, alerts []string) error {
	since := time.Now()
	return harness.Await(ctx, quietTimeout, pollInterval, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range alerts {
			if state := w.states[name]; w.err != nil || state != inactive {
				since = time.Now()
				return errors.Join(w.err, fmt.Errorf("%s is %q", name, state))
			}
		}
		if quiet := time.Since(since); quiet < quietTime {
			return fmt.Errorf("no alert has been active for %s", quiet)
		}
		return nil
	})
}

// await waits until alerts have a state; a pending alert counts as inactive.
func (w *watcher) await(ctx context.Context, timeout time.Duration, alerts []string, state string) error {
	return harness.Await(ctx, timeout, pollInterval, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			return w.err
		}
		for _, name := range alerts {
			is := w.states[name]
			if is == pending {
				is = inactive
			}
			if is != state {
				return fmt.Errorf("%s is %q, not %s", name, w.states[name], state)
			}
		}
		return nil
	})
}

// times returns when alerts fired and cleared since reset.
func (w *watcher) times() (fired, ended map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.fired), maps.Clone(w.ended)
}
