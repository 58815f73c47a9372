package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ports that FreeAddress draws from lie below the ephemeral ports of the system. Otherwise a client that reconnects
// to a killed server could be given the server's port, and the server could not restart.
const (
	minPort     = 15_000
	maxPort     = 32_000
	maxAttempts = 100
)

// reserved holds the UDP port of each address that was given out, until this process ends. Another process that asks
// for an address, such as the tests of another package, then gets a different one, even before something listens there.
var reserved struct { //nolint:gochecknoglobals // Ports belong to the machine.
	mu    sync.Mutex
	ports []net.PacketConn
}

// FreeAddress returns an address of this machine on which nothing listens and that no other caller was given. Programs
// that do not use FreeAddress can still take the port before it is used.
func FreeAddress() (address string, err error) {
	for range maxAttempts {
		port := minPort + rand.IntN(maxPort-minPort) //nolint:gosec // The port is not a secret.
		address = fmt.Sprintf("127.0.0.1:%d", port)
		if err = reserve(address); err == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("finding a free port: %w", err)
}

// Address is FreeAddress for a test.
func Address(t testing.TB) string {
	t.Helper()
	address, err := FreeAddress()
	require.NoError(t, err)
	return address
}

func reserve(address string) error {
	udp, err := net.ListenPacket("udp", address) //nolint:noctx // Binding does not block.
	if err != nil {
		return fmt.Errorf("reserving a port: %w", err)
	}
	tcp, err := net.Listen("tcp", address) //nolint:noctx // Binding does not block.
	if err != nil {
		_ = udp.Close() // Nothing was sent.
		return fmt.Errorf("checking that a port is free: %w", err)
	}
	_ = tcp.Close() // No connection was accepted.
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	reserved.ports = append(reserved.ports, udp)
	return nil
}
