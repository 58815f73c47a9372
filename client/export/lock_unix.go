//go:build unix

package export

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock locks a file, which it creates. The kernel releases the lock when the process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The caller chooses the path.
	if err != nil {
		return nil, fmt.Errorf("locking the export: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, RequestError("Another export writes the same output. Wait until it ends")
		}
		return nil, fmt.Errorf("locking the export: %w", err)
	}
	return func() { _ = file.Close() }, nil
}
