// Package natstest gives a test a NATS server of its own, with JetStream.
package natstest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	devnats "roomsensor/internal/dev/nats"
)

// Server is the server of one test, in its process. It stores messages in files and syncs each one before it
// acknowledges it.
type Server struct {
	// URL does not change on a restart.
	URL string

	options devnats.Options
	running *devnats.Server
}

// New starts a server. It stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{options: devnats.Options{StoreDir: storeDir(t)}}
	s.start(t)
	t.Cleanup(s.Shutdown)
	return s
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

func (s *Server) start(t testing.TB) {
	t.Helper()
	running, err := devnats.Start(s.options)
	require.NoError(t, err)
	s.running, s.options.Port, s.URL = running, running.Port, running.URL
}

// Shutdown stops the server, if it runs.
func (s *Server) Shutdown() { s.running.Shutdown() }

// Restart stops the server, if it runs, and starts it on the same port with the same streams.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Shutdown()
	s.start(t)
}
