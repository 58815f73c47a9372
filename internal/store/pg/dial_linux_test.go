package pg

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"roomsensor/test/dbtest"
)

// TestDialerOptions reads the socket options of the connections of both pools. Whether the kernel then detects a server
// that is disconnected is checked by the cluster trial, because disconnecting one needs privileges.
func TestDialerOptions(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), dbtest.New(t).URL, API)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for _, pool := range []*pgxpool.Pool{s.Pool, s.Exports} {
		option := socketOptions(t, pool)
		require.Equal(t, 10_000, option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT))
		require.Equal(t, 1, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
		require.Equal(t, 4, option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE))
		require.Equal(t, 2, option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL))
		require.Equal(t, 3, option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT))
	}
}

// socketOptions returns a function that reads options of a connection of a pool.
func socketOptions(t *testing.T, pool *pgxpool.Pool) func(level, name int) int {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	tcp, ok := conn.Conn().PgConn().Conn().(*net.TCPConn)
	require.True(t, ok, "tests connect over TCP, without TLS")
	raw, err := tcp.SyscallConn()
	require.NoError(t, err)
	return func(level, name int) (value int) {
		require.NoError(t, raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }))
		require.NoError(t, err)
		return value
	}
}

// TestDialerUnixSocket connects to a Unix socket, which has no TCP options.
func TestDialerUnixSocket(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/.s.PGSQL.5432"
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	conn, err := newDialer().DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
