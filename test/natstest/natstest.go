// Package natstest gives a test a NATS server of its own, with JetStream.
package natstest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	devnats "roomsensor/internal/dev/nats"
)

// Server is the server of one test. It stores messages in files and syncs each one before it acknowledges it.
type Server struct {
	// URL does not change on a restart.
	URL string

	machine machine
}

// machine starts and stops a server, on the same port and with the same streams each time.
type machine interface {
	start(t testing.TB) (url string)
	stop()
}

// New starts a server in this process. It stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	return serve(t, &embedded{options: devnats.Options{StoreDir: storeDir(t)}})
}

// storeDir returns a directory for streams, which is removed when the test ends. It is in memory on a machine with
// enough, because tests that sync thousands of messages would wait for the disk most of the time.
func storeDir(t testing.TB) string {
	t.Helper()
	if dir, ok := memoryDir(); ok {
		dir, err := os.MkdirTemp(dir, "roomsensor-nats-") //nolint:usetesting // TempDir is on the disk.
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		return dir
	}
	return t.TempDir()
}

// Each runs a test on a server in this process and on one in a container, whose connections break without a last
// packet, as they do when a machine fails. The second one is skipped if Docker cannot supply the image.
func Each(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *Server{"embedded": New, "container": newContainer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func serve(t testing.TB, m machine) *Server {
	t.Helper()
	s := &Server{machine: m, URL: m.start(t)}
	t.Cleanup(s.Shutdown)
	return s
}

// Shutdown stops the server, if it runs.
func (s *Server) Shutdown() { s.machine.stop() }

// Restart stops the server, if it runs, and starts it on the same port with the same streams.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Shutdown()
	s.URL = s.machine.start(t)
}

// embedded is a server in this process.
type embedded struct {
	options devnats.Options
	running *devnats.Server
}

func (e *embedded) start(t testing.TB) string {
	t.Helper()
	running, err := devnats.Start(e.options)
	require.NoError(t, err)
	e.running, e.options.Port = running, running.Port
	return running.URL
}

func (e *embedded) stop() { e.running.Shutdown() }
