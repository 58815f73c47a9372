package store

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence ends a connection whose other end does not confirm what was sent.
func limitSilence(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil // A socket of this machine.
	}
	var refused error
	err := conn.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(mostSilence.Milliseconds()))
	})
	if err != nil {
		return err //nolint:wrapcheck // Of the connection that is about to be made; the driver names it.
	}
	return refused //nolint:wrapcheck // Likewise.
}
