package store

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"roomsensor/internal/dbtest"
)

// TestConnectionsNoticeAServerThatIsCutOff reads what the system was told of the connections of a pool. That it does as
// it was told shows in the trial of a cluster: no test can cut a server off without its rights.
func TestConnectionsNoticeAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), dbtest.New(t).URL, API)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for pool, limit := range map[*pgxpool.Pool]int{s.pool: 10_000, s.exports: 0} {
		option := optionsOf(t, pool)
		require.Equal(t, limit, option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT))
		require.Equal(t, 1, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
		require.Equal(t, 4, option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE))
		require.Equal(t, 2, option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL))
		require.Equal(t, 3, option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT))
	}
}

// optionsOf reads what the system keeps of a pool's connection.
func optionsOf(t *testing.T, pool *pgxpool.Pool) func(level, name int) int {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	tcp, ok := conn.Conn().PgConn().Conn().(*net.TCPConn)
	require.True(t, ok, "the tests' server is reached over TCP, without TLS")
	raw, err := tcp.SyscallConn()
	require.NoError(t, err)
	return func(level, name int) (value int) {
		require.NoError(t, raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }))
		require.NoError(t, err)
		return value
	}
}

// TestSocketsOfTheMachineAreLeftAlone has what PostgreSQL calls a local connection.
func TestSocketsOfTheMachineAreLeftAlone(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/.s.PGSQL.5432"
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	conn, err := newDialer(limitSilence).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
