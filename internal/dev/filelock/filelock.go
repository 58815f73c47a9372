// Package filelock has locks between the processes of a machine. The kernel releases a lock when its holder dies.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"roomsensor/internal/retry"
)

// ErrHeld is what Try returns while another process, or another part of this one, holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// pollInterval is how often Lock tries again: flock cannot be cancelled, so waiting in the kernel is not an option.
const pollInterval = 100 * time.Millisecond

// Lock creates the file at path if it is missing and locks it. While another process holds the lock it waits, until
// ctx ends; it calls waiting once before it waits.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if unlock, err = Try(path); !errors.Is(err, ErrHeld) {
		return unlock, err
	}
	waiting()
	err = retry.Until(ctx, pollInterval, func(context.Context) (bool, error) {
		var err error
		unlock, err = Try(path)
		if errors.Is(err, ErrHeld) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return unlock, nil
}

// Try is Lock without waiting: it returns ErrHeld if another process holds the lock.
func Try(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The caller chooses the path.
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !isAt(f, path) {
		// Without isAt, the lock could be on a file that its last holder deleted, beside a new file that another
		// process locks.
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}
