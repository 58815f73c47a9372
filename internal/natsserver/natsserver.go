// Package natsserver runs a NATS server with JetStream inside this process, for the demo and the tests. It listens on
// 127.0.0.1 alone.
package natsserver

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

// Options says which server is wanted.
type Options struct {
	// StoreDir keeps the streams; a server that is started on it again goes on with them.
	StoreDir string
	// Port is any that is free when 0.
	Port int
	// MaxStore bounds what all streams together may take on disk, in bytes; most of what is free when 0.
	MaxStore int64
	// Log receives the server's warnings and errors, and at level debug its notices.
	Log zerolog.Logger
}

// Server is a running server.
type Server struct {
	// URL is where clients connect to.
	URL string
	// Port is the one that it listens on.
	Port int

	nats *server.Server
}

// Start returns a server that takes connections. A message of a stream is on disk before it is acknowledged.
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

// Shutdown ends the server; what its streams hold stays on disk. It may be called again.
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
		// By default it acknowledges up to two minutes before it syncs.
		SyncAlways: true,
		// Signals belong to the process around it.
		NoSigs: true,
	}
}

// ready waits until the server takes connections and has its streams.
func (s *Server) ready(log *logger) error {
	for deadline := time.Now().Add(startTimeout); !s.nats.ReadyForConnections(startPoll); {
		select {
		case err := <-log.fatal:
			return err
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it takes no connections after %s", startTimeout)
		}
	}
	if !s.nats.JetStreamEnabled() {
		return errors.New("it has no JetStream")
	}
	addr, ok := s.nats.Addr().(*net.TCPAddr)
	if !ok {
		return errors.New("it does not listen on TCP")
	}
	s.URL, s.Port = s.nats.ClientURL(), addr.Port
	return nil
}
