// Package nats runs a NATS server with JetStream inside this process, for the demo and tests. It listens on 127.0.0.1
// only. Importers name it devnats, because nats is the client library.
package nats

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

const (
	startTimeout = 30 * time.Second
	startPoll    = 50 * time.Millisecond
)

// Options configure a server.
type Options struct {
	// StoreDir keeps the streams. A later server on the same directory continues with them.
	StoreDir string
	// Port 0 selects a free port.
	Port int
	// MaxStore limits the size of all streams on disk, in bytes; 0 allows most of the free space.
	MaxStore int64
	// Log receives the server's warnings and errors, and its notices at debug level.
	Log zerolog.Logger
}

// Server is a running server.
type Server struct {
	// URL is the address for clients.
	URL string
	// Port is the port that it listens on.
	Port int

	nats *server.Server
}

// Start starts a server and waits until it accepts connections. It acknowledges a message after it has synced it to
// disk.
func Start(o Options) (*Server, error) {
	if o.StoreDir == "" {
		return nil, errors.New("starting NATS: no directory is given for its streams")
	}
	log := &logger{log: o.Log, fatal: make(chan error, 1)}
	ns, err := server.NewServer(o.server())
	if err != nil {
		return nil, fmt.Errorf("starting NATS: %w", err)
	}
	ns.SetLogger(log, false, false)
	ns.Start()
	s := &Server{nats: ns}
	if err := s.ready(log); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("starting NATS: %w", err)
	}
	return s, nil
}

// Shutdown stops the server. The streams stay on disk. Further calls do nothing.
func (s *Server) Shutdown() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

func (o Options) server() *server.Options {
	port := o.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return &server.Options{
		ServerName:        "roomsensor",
		Host:              "127.0.0.1",
		Port:              port,
		JetStream:         true,
		StoreDir:          o.StoreDir,
		JetStreamMaxStore: o.MaxStore,
		// The default acknowledges first and syncs every two minutes.
		SyncAlways: true,
		// The process handles signals itself.
		NoSigs: true,
	}
}

// ready waits until the server accepts connections and has loaded its streams.
func (s *Server) ready(log *logger) error {
	for deadline := time.Now().Add(startTimeout); !s.nats.ReadyForConnections(startPoll); {
		select {
		case err := <-log.fatal:
			return err
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not accept connections after %s", startTimeout)
		}
	}
	if !s.nats.JetStreamEnabled() {
		return errors.New("JetStream is not enabled")
	}
	addr, ok := s.nats.Addr().(*net.TCPAddr)
	if !ok {
		return errors.New("it does not listen on TCP")
	}
	s.URL, s.Port = s.nats.ClientURL(), addr.Port
	return nil
}

// logger writes the server's messages to zerolog. A fatal error of the server ends its start, not this process.
type logger struct {
	log   zerolog.Logger
	fatal chan error
}

func (l *logger) Noticef(format string, args ...any) { l.log.Debug().Msgf("NATS: "+format, args...) }
func (l *logger) Warnf(format string, args ...any)   { l.log.Warn().Msgf("NATS: "+format, args...) }
func (l *logger) Errorf(format string, args ...any)  { l.log.Error().Msgf("NATS: "+format, args...) }

func (l *logger) Debugf(format string, args ...any) { l.log.Trace().Msgf("NATS: "+format, args...) }

func (l *logger) Tracef(format string, args ...any) { l.log.Trace().Msgf("NATS: "+format, args...) }

// Fatalf keeps the first error, which is the cause; later ones are only logged.
func (l *logger) Fatalf(format string, args ...any) {
	l.log.Error().Msgf("NATS: "+format, args...)
	select {
	case l.fatal <- fmt.Errorf(format, args...):
	default:
	}
}
