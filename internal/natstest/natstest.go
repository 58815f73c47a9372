// Package natstest gives a test a NATS server with JetStream of its own: inside the test's process, or in a container.
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

	machine machine
}

// machine runs a server: again on the same port and the same streams.
type machine interface {
	start(t testing.TB) (url string)
	stop()
}

// New starts a server inside this process, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	return serve(t, &embedded{options: natsserver.Options{StoreDir: t.TempDir()}})
}

// Each runs a test on a server inside this process and on one in a container, whose connections break as they do when
// a machine dies: nothing says goodbye. The latter is skipped where Docker cannot supply the image.
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

// Shutdown ends the server, as an outage does. It may be called again.
func (s *Server) Shutdown() { s.machine.stop() }

// Restart ends the server, where it runs, and starts it on the same port and the same streams.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Shutdown()
	s.URL = s.machine.start(t)
}

// embedded is a server inside this process.
type embedded struct {
	options natsserver.Options
	running *natsserver.Server
}

func (e *embedded) start(t testing.TB) string {
	t.Helper()
	running, err := natsserver.Start(e.options)
	require.NoError(t, err)
	e.running, e.options.Port = running, running.Port
	return running.URL
}

func (e *embedded) stop() { e.running.Shutdown() }
