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
