// Package filelock lets one process at a time write an output of the packages below client.
package filelock

import "errors"

// ErrHeld is what Try returns while another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")
