package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Env is the environment of a trial: a directory, a progress log, the unexpected events, and what Close must clean up.
// It is safe for concurrent use.
type Env struct {
	Dir string

	progress  io.Writer
	removeDir bool

	mu       sync.Mutex
	findings []string
	closers  []func(context.Context) error
}

// NewEnv creates an environment in dir, or in a temporary directory if dir is empty. It writes a line per event to
// progress, which may be nil.
func NewEnv(dir string, progress io.Writer) (*Env, error) {
	e := &Env{Dir: dir, progress: progress}
	var err error
	if e.Dir != "" {
		err = os.MkdirAll(e.Dir, 0o750)
	} else {
		e.removeDir = true
		e.Dir, err = os.MkdirTemp("", "roomsensor-trial-")
	}
	if err != nil {
		return nil, fmt.Errorf("preparing a trial: %w", err)
	}
	return e, nil
}

// Logf writes a line of progress, with the time.
func (e *Env) Logf(format string, args ...any) {
	if e.progress != nil {
		// The trial continues if progress cannot be shown.
		_, _ = fmt.Fprintf(e.progress, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
	}
}

// Unexpected records an event that must not happen under any fault. It makes the trial fail.
func (e *Env) Unexpected(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.findings = append(e.findings, fmt.Sprintf(format, args...))
	e.Logf("unexpected: "+format, args...)
}

// Findings returns the unexpected events.
func (e *Env) Findings() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.findings)
}

// OnClose adds a function that Close calls.
func (e *Env) OnClose(f func(context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, f)
}

// closeTimeout bounds Close, which also runs after the trial was canceled.
const closeTimeout = 2 * time.Minute

// Close calls the functions of OnClose in reverse order. It removes a temporary directory unless keep is set.
func (e *Env) Close(ctx context.Context, keep bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	e.mu.Lock()
	closers := e.closers
	e.closers = nil
	e.mu.Unlock()
	var errs []error
	for _, closer := range slices.Backward(closers) {
		errs = append(errs, closer(ctx))
	}
	if e.removeDir && !keep {
		errs = append(errs, os.RemoveAll(e.Dir))
	} else if keep {
		e.Logf("logs are in %s", e.Dir)
	}
	return errors.Join(errs...)
}

// LogFile creates the log file of a process.
func (e *Env) LogFile(name string) (*os.File, error) {
	path := filepath.Join(e.Dir, name+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // In the trial's directory.
	if err != nil {
		return nil, fmt.Errorf("creating a log file: %w", err)
	}
	e.OnClose(func(context.Context) error { return file.Close() })
	return file, nil
}
