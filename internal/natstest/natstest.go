// Package natstest gives a test a NATS server with JetStream of its own, inside the test's process.
package natstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/natsserver"
)

// Server is the server of one test. It stores on disk and syncs every message before it acknowledges it.
type Server struct {
	// URL stays the same over a restart.
	URL string

	options natsserver.Options
	running *natsserver.Server
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{options: natsserver.Options{StoreDir: t.TempDir()}}
	s.start(t)
	t.Cleanup(s.Shutdown)
	return s
}

// Shutdown ends the server, as an outage does. It may be called again.
func (s *Server) Shutdown() { s.running.Shutdown() }

// Restart ends the server, where it runs, and starts it on the same port and the same streams.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Shutdown()
	s.start(t)
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	running, err := natsserver.Start(s.options)
	require.NoError(t, err)
	s.running, s.URL, s.options.Port = running, running.URL, running.Port
}
