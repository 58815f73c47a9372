package queue_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// guarded starts a server that asks for a password, and returns the port it listens on.
func guarded(t *testing.T, dir string, port int, password string) (s *server.Server, bound int) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, Username: "user", Password: password, JetStream: true, StoreDir: dir, NoSigs: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(patience))
	return s, s.Addr().(*net.TCPAddr).Port
}

// dials counts the attempts to connect.
type dials struct{ n atomic.Int64 }

func (d *dials) Dial(network, address string) (net.Conn, error) {
	d.n.Add(1)
	return net.DialTimeout(network, address, patience)
}

// A worker that runs while the password is changed at the server comes back by itself.
func TestARefusedPasswordIsNotTheEnd(t *testing.T) {
	t.Parallel()
	dir, attempts := t.TempDir(), &dials{}
	old, port := guarded(t, dir, server.RANDOM_PORT, "old")
	nc, err := queue.Connect("nats://user:new@"+old.Addr().String(), t.Name(), zerolog.New(t.Output()),
		nats.SetCustomDialer(attempts), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, _ := open(t, nc, small)
	require.Eventually(t, func() bool { return attempts.n.Load() > 5 }, patience, time.Millisecond)
	require.ErrorIs(t, q.Check(t.Context()), nats.ErrAuthorization)
	require.ErrorIs(t, q.Declare(t.Context()), nats.ErrAuthorization)

	old.Shutdown()
	old.WaitForShutdown()
	guarded(t, dir, port, "new")
	require.Eventually(t, func() bool { return q.Check(t.Context()) == nil }, patience, 50*time.Millisecond)
	_, err = q.Publish(t.Context(), []queue.Message{{HardwareID: "dev:1", Text: []byte("{}")}})
	require.NoError(t, err)
}

// deaf makes connections on which nothing arrives any more once it is told so, as when the server was cut off.
type deaf struct{ now atomic.Bool }

func (d *deaf) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, patience)
	return &deafConn{conn, d}, err
}

type deafConn struct {
	net.Conn
	deaf *deaf
}

func (c *deafConn) Read(p []byte) (n int, err error) {
	for n, err = c.Conn.Read(p); err == nil && c.deaf.now.Load(); {
		n, err = c.Conn.Read(p)
	}
	return n, err
}

// A server that was cut off says nothing, not even that it is gone.
func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, t.TempDir(), server.RANDOM_PORT, "here")
	line := &deaf{}
	lost := make(chan error, 2) // Also of the end.
	nc, err := queue.Connect("nats://user:here@"+s.Addr().String(), t.Name(), zerolog.Nop(), nats.SetCustomDialer(line),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { lost <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	line.now.Store(true)
	select {
	case err := <-lost:
		require.ErrorIs(t, err, nats.ErrStaleConnection)
	case <-time.After(patience):
		require.Fail(t, "the connection is still taken for one")
	}
}
