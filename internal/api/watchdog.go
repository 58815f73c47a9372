package api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errStalled ends work that made no progress; it counts as a deadline.
var errStalled = fmt.Errorf("no progress: %w", context.DeadlineExceeded)

// watchdog ends a context once there was no progress for a time, however long
// the work takes as a whole.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// watch begins with the time until the first progress.
func watch(parent context.Context, first time.Duration) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	return &watchdog{ctx, cancel, time.AfterFunc(first, func() { cancel(errStalled) })}
}

// progress gives the work its next span of time.
func (w *watchdog) progress() { w.timer.Reset(stallTimeout) }

// rest stops the clock while something else, with a deadline of its own, runs.
func (w *watchdog) rest() { w.timer.Stop() }

// explain turns an error that the watchdog brought about into its reason.
func (w *watchdog) explain(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}
	return err
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
