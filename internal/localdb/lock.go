package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// pollInterval is how often something that cannot be waited for is looked at.
const pollInterval = 100 * time.Millisecond

// lock takes the lock of a file that is made for it, and waits for whoever holds it. The kernel frees it when its
// holder dies.
func lock(ctx context.Context, path string, p *progress) (unlock func(), err error) {
	unlock, err = tryLock(path)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		p.say("waiting for another process that starts or stops the same server")
	}
	for errors.Is(err, syscall.EWOULDBLOCK) {
		if err := pause(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, err)
		}
		unlock, err = tryLock(path)
	}
	return unlock, err
}

// tryLock is lock without the waiting: EWOULDBLOCK when somebody else holds it.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // A file of ours.
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil && !isAt(f, path) {
		// Its last holder deleted the file: the lock that counts is on a new one.
		err = syscall.EWOULDBLOCK
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// isAt tells whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

// pause waits for d, or returns the error of a context that ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
