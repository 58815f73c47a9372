package pg

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence sets TCP_USER_TIMEOUT, which closes a connection whose peer does not confirm sent data within
// maxSilence.
func limitSilence(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil // A Unix socket.
	}
	var optErr error
	err := conn.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(maxSilence.Milliseconds()))
	})
	if err != nil {
		return err //nolint:wrapcheck // The driver wraps it.
	}
	return optErr //nolint:wrapcheck // The driver wraps it.
}
