package queue_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/test/natstest"
)

// startWithPassword starts a server that requires a password, and returns its port.
func startWithPassword(t *testing.T, dir string, port int, password string) (s *server.Server, bound int) {
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

// countingDialer counts the attempts to connect.
type countingDialer struct{ n atomic.Int64 }

func (d *countingDialer) Dial(network, address string) (net.Conn, error) {
	d.n.Add(1)
	return net.DialTimeout(network, address, patience)
}

// A client whose password is refused connects once the server accepts it.
func TestConnectRetriesARefusedPassword(t *testing.T) {
	t.Parallel()
	dir, attempts := t.TempDir(), &countingDialer{}
	old, port := startWithPassword(t, dir, server.RANDOM_PORT, "old")
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
	startWithPassword(t, dir, port, "new")
	require.Eventually(t, func() bool { return q.DeclareMissing(t.Context()) == nil }, patience, 50*time.Millisecond)
	_, err = q.Publish(t.Context(), []queue.Message{{HardwareID: "dev:1", Text: []byte("{}")}})
	require.NoError(t, err)
}

// TestConnectRotatesThePassword checks that a client whose password is in a file follows a change of it, without a URL
// that it can use meanwhile.
func TestConnectRotatesThePassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, port := startWithPassword(t, dir, server.RANDOM_PORT, "old")
	path := filepath.Join(t.TempDir(), "url")
	write := func(user string) {
		text := fmt.Sprintf("nats://%s@127.0.0.1:%d\n", user, port)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("user:old")
	lost, restored := make(chan struct{}, 4), make(chan struct{}, 4)
	nc, err := queue.Connect(config.InFile+path, t.Name(), zerolog.New(t.Output()),
		nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost <- struct{}{} }),
		nats.ReconnectHandler(func(*nats.Conn) { restored <- struct{}{} }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	require.NotContains(t, nc.ConnectedUrl(), "old")
	for _, broken := range []bool{false, true} { // The file is replaced before or after the server.
		if broken {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		} else {
			write("user:new")
		}
		password := map[bool]string{false: "new", true: "newest"}[broken]
		options := &server.Options{
			Host: "127.0.0.1", Port: port, Username: "user", Password: password, JetStream: true,
			StoreDir: dir, NoSigs: true,
		}
		require.NoError(t, s.ReloadOptions(options))
		receive(t, lost)
		if broken {
			write("user:newest")
		}
		receive(t, restored)
		require.NoError(t, nc.Flush())
	}
}

func receive(t *testing.T, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		require.Fail(t, "nothing happened")
	}
}

// silentDialer makes connections that receive nothing once silent is set, as after a network failure.
type silentDialer struct{ silent atomic.Bool }

func (d *silentDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, patience)
	return &silentConn{conn, d}, err
}

type silentConn struct {
	net.Conn
	dialer *silentDialer
}

func (c *silentConn) Read(p []byte) (n int, err error) {
	for n, err = c.Conn.Read(p); err == nil && c.dialer.silent.Load(); {
		n, err = c.Conn.Read(p)
	}
	return n, err
}

// A server behind a failed network does not even close the connection.
func TestConnectDetectsASilentServer(t *testing.T) {
	t.Parallel()
	s, _ := startWithPassword(t, t.TempDir(), server.RANDOM_PORT, "here")
	dialer := &silentDialer{}
	lost := make(chan error, 2) // Also for the final Close.
	nc, err := queue.Connect("nats://user:here@"+s.Addr().String(), t.Name(), zerolog.Nop(), nats.SetCustomDialer(dialer),
		func(o *nats.Options) error { // The client pings less often than a test may wait.
			require.LessOrEqual(t, o.PingInterval*time.Duration(o.MaxPingsOut+1), 6*time.Second)
			o.PingInterval = 50 * time.Millisecond
			return nil
		},
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { lost <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	dialer.silent.Store(true)
	select {
	case err := <-lost:
		require.ErrorIs(t, err, nats.ErrStaleConnection)
	case <-time.After(patience):
		require.Fail(t, "the connection still counts as established")
	}
}

// TestStreamLost checks that a process that used a stream neither creates nor uses another one, unless it is the one to
// expect.
func TestStreamLost(t *testing.T) {
	t.Parallel()
	e := newEnvOn(t, natstest.New(t), small)
	require.ErrorIs(t, e.Check(e.ctx), queue.ErrNoStream)
	require.NoError(t, e.DeclareMissing(e.ctx), "creates the first stream")
	first := e.Created()
	e.publish(t, "a")

	require.NoError(t, e.js.DeleteStream(e.ctx, queue.StreamName))
	requireLost := func() {
		t.Helper()
		require.ErrorIs(t, e.Check(e.ctx), queue.ErrStreamLost)
		require.ErrorIs(t, e.DeclareMissing(e.ctx), queue.ErrStreamLost)
		_, err := e.Consume(e.ctx)
		require.ErrorIs(t, err, queue.ErrStreamLost)
		_, err = e.Publish(e.ctx, messages("b"))
		require.ErrorIs(t, err, queue.ErrStreamLost)
	}
	requireLost()
	require.NoError(t, e.Declare(e.ctx), "as an operator does")
	requireLost()

	stream, _ := e.info(t)
	e.Expect(stream.Created.UTC().Truncate(time.Microsecond))
	require.NoError(t, e.Check(e.ctx))
	require.True(t, e.Created().After(first))
	e.publish(t, "c")
	require.NoError(t, e.consume(t, 1)[0].Ack())
}

// requireNotConnected checks that the errors of requests name the address of the server, and not what the client did
// about the message.
func requireNotConnected(t *testing.T, q *queue.Queue, address string) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(q.Check(t.Context()), queue.ErrNotConnected) },
		patience, time.Millisecond)
	team := uuid.New()
	_, published := q.Publish(t.Context(), []queue.Message{{HardwareID: "dev:1", Team: &team, Text: []byte("{}")}})
	_, unread := q.State(t.Context())
	_, inspected := q.Inspect(t.Context())
	for _, err := range []error{published, unread, inspected, q.Declare(t.Context())} {
		require.ErrorIs(t, err, queue.ErrNotConnected)
		require.Regexp(t, "^not connected to NATS at "+regexp.QuoteMeta(address)+"(: |$)", err.Error())
		require.NotRegexp(t, "buffer|headers|secret", err.Error())
	}
}

// A client that was never connected knows neither whether the server supports headers, nor its limits.
func TestErrorsBeforeTheFirstConnection(t *testing.T) {
	t.Parallel()
	nc, err := queue.Connect("nats://user:secret@127.0.0.1:1,nats://user:secret@[::1]:1", t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, _ := open(t, nc, small)
	requireNotConnected(t, q, "127.0.0.1:1 or [::1]:1")
}

func TestCheckFailsWhileTheServerIsUnavailable(t *testing.T) {
	t.Parallel()
	e := newEnvOn(t, natstest.New(t), small)
	require.NoError(t, e.DeclareMissing(e.ctx))
	e.server.Shutdown()
	require.Error(t, e.Check(e.ctx))
	_, err := e.Publish(e.ctx, messages("fails at once"))
	require.Error(t, err)
	requireNotConnected(t, e.Queue, strings.TrimPrefix(e.server.URL, "nats://"))
	e.server.Restart(t)
	require.Eventually(t, func() bool { return e.Check(e.ctx) == nil }, patience, 50*time.Millisecond)
	e.publish(t, "stored")
}
