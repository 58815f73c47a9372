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

	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// Options are what the trials with a ledger have in common. The tags are the flags of the command line.
type Options struct {
	Seed  uint64 `json:"seed" help:"Seed of the uploads and of the plan of faults (default: random)." placeholder:"N"`
	Units int    `json:"units" kong:"-"`
	Teams int    `json:"teams" kong:"-"`
	// AckWait overrides the ack_wait of the consumer; 0 leaves it as in production.
	AckWait time.Duration `json:"ack_wait_ns" kong:"-"`
	// Dir keeps programs, logs and streams. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-" help:"Directory for programs, logs and streams (default: a temporary one)." placeholder:"DIR"`
	// Progress receives a line per event. It may be nil.
	Progress io.Writer `json:"-" kong:"-"`
}

// Programs are the paths of the programs under test.
type Programs struct{ Roomsensor, NATSServer string }

// Build compiles the programs into a directory.
func Build(ctx context.Context, dir string) (p Programs, err error) {
	if p.Roomsensor, err = proctest.Build(ctx, dir, proctest.Roomsensor); err != nil {
		return p, err
	}
	p.NATSServer, err = proctest.Build(ctx, dir, proctest.NATSServer)
	return p, err
}

// Await calls check once per interval until it returns nil. After the timeout it returns the last error of check too.
func Await(ctx context.Context, timeout, interval time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	err := retry.Until(ctx, interval, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Env is the environment of a trial: a directory, a progress log, the unexpected events, and what Close must clean up.
// It is safe for concurrent use.
type Env struct {
	Dir      string
	Programs Programs // of Build

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

// Build compiles the programs into the directory.
func (e *Env) Build(ctx context.Context) (err error) {
	e.Logf("building roomsensor and nats-server")
	e.Programs, err = Build(ctx, e.Dir)
	return err
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

// Close calls the functions of OnClose in reverse order. It removes a temporary directory unless keep is set or one of
// them fails.
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
	err := errors.Join(errs...)
	if keep || err != nil {
		e.Logf("logs are in %s", e.Dir)
	} else if e.removeDir {
		return os.RemoveAll(e.Dir) //nolint:wrapcheck // It names the directory.
	}
	return err
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
