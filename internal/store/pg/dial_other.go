//go:build !linux

package pg

import "syscall"

// limitSilence does nothing: TCP_USER_TIMEOUT exists on Linux only.
func limitSilence(string, string, syscall.RawConn) error { return nil }
