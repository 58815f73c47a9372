package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// errStalled ends work that made no progress; it counts as a deadline.
var errStalled = fmt.Errorf("no progress: %w", context.DeadlineExceeded)

// watchdog ends a context once there was no progress for a time, however long
// the work takes as a whole.
type watchdog struct {
	timer   *time.Timer
	stalled atomic.Bool
	cancel  context.CancelFunc
}

// watch begins with the time until the first progress.
func watch(parent context.Context, first time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(parent)
	w := &watchdog{cancel: cancel}
	w.timer = time.AfterFunc(first, func() {
		w.stalled.Store(true)
		cancel()
	})
	return ctx, w
}

// progress gives the work its next span of time.
func (w *watchdog) progress() { w.timer.Reset(stallTimeout) }

// rest stops the clock while something else, with a deadline of its own, runs.
func (w *watchdog) rest() { w.timer.Stop() }

// explain turns an error that the watchdog brought about into its reason.
func (w *watchdog) explain(err error) error {
	if err != nil && w.stalled.Load() {
		return errStalled
	}
	return err
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}
