package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/procs"
	"roomsensor/internal/queue"
)

const (
	// stopWithin is what a process may take to end.
	stopWithin = 20 * time.Second
	readyAfter = time.Minute
)

// Service is a process of the program that is ready.
type Service struct {
	*procs.Process
	URL string // where it listens
	Ops string // its ops address
}

// Serve starts a command of the program and waits until it is ready.
func (g *Ground) Serve(ctx context.Context, name string, n *procs.NATS, args ...string) (*Service, error) {
	return g.ServeOn(ctx, g.Database, name, n, args...)
}

// ServeOn is Serve with another address of the database.
func (g *Ground) ServeOn(
	ctx context.Context, database, name string, n *procs.NATS, args ...string,
) (*Service, error) {
	address, err := procs.FreeAddress()
	if err != nil {
		return nil, err
	}
	ops, err := procs.FreeAddress()
	if err != nil {
		return nil, err
	}
	log, err := g.LogFile(name)
	if err != nil {
		return nil, err
	}
	env := []string{
		"DATABASE_URL=" + database, "API_ADDR=" + address, "INGEST_ADDR=" + address, "OPS_ADDR=" + ops, "LOG_LEVEL=warn",
	}
	if n != nil {
		env = append(env, "NATS_URL="+n.URL)
	}
	p, err := procs.Start(procs.Command{Path: g.roomsensor, Args: args, Env: env, Log: log})
	if err != nil {
		return nil, err
	}
	g.Push(func() error { p.Kill(); return nil })
	ctx, cancel := context.WithTimeout(ctx, readyAfter)
	defer cancel()
	if err := p.AwaitReady(ctx, ops); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return &Service{Process: p, URL: "http://" + address, Ops: ops}, nil
}

// Stop ends the process in order.
func (s *Service) Stop() error {
	_, err := s.Process.Stop(stopWithin)
	return err
}

// Run runs a command of the program to its end.
func (g *Ground) Run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, g.roomsensor, args...) //nolint:gosec // Benchmarks name it.
	command.Env = append(os.Environ(), "DATABASE_URL="+g.Database)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running roomsensor %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return nil
}

// Queue is a NATS server that syncs every message, and its stream.
type Queue struct {
	*queue.Queue
	Server *procs.NATS
}

// OpenQueue starts a NATS server and declares the stream.
func (g *Ground) OpenQueue(ctx context.Context, name string) (*Queue, error) {
	dir := filepath.Join(g.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a place for streams: %w", err)
	}
	log, err := g.LogFile(name)
	if err != nil {
		return nil, err
	}
	server, err := procs.StartNATS(ctx, g.natsPath, dir, log)
	if err != nil {
		return nil, err
	}
	g.Push(func() error { server.Kill(); return nil })
	conn, err := queue.Connect(server.URL, "bench", zerolog.Nop())
	if err != nil {
		return nil, err
	}
	g.Push(func() error { conn.Close(); return nil })
	q, err := queue.New(conn, queue.Config{Replicas: 1, MaxBytes: queue.DefaultMaxBytes})
	if err != nil {
		return nil, err
	}
	opened := &Queue{Queue: q, Server: server}
	return opened, opened.declare(ctx)
}

const pollEvery = 10 * time.Millisecond

// declare waits for the connection, too.
func (q *Queue) declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyAfter)
	defer cancel()
	return Until(ctx, func() (bool, error) { return q.Declare(ctx) == nil, nil })
}

// Drained waits until everything in the stream was stored and acknowledged.
func (q *Queue) Drained(ctx context.Context) error {
	return Until(ctx, func() (bool, error) {
		state, err := q.State(ctx)
		return state.Waiting == 0 && state.Unacknowledged == 0, err
	})
}

// Until polls a condition.
func Until(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		done, err := holds()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// LogFile takes what a process prints; nobody reads it unless something fails.
func (g *Ground) LogFile(name string) (*os.File, error) {
	path := filepath.Join(g.dir, name+".log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // In a directory of ours.
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	g.Push(f.Close)
	return f, nil
}

var errNoMemory = errors.New("the kernel does not tell the memory of a process")

// Memory is what a process has resident, and the most that it had since ResetPeak, in bytes.
func (s *Service) Memory() (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		return 0, 0, errors.Join(errNoMemory, err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			now = kib << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	if now == 0 || peak == 0 {
		return 0, 0, errNoMemory
	}
	return now, peak, nil
}

// ResetPeak makes the kernel forget the most that a process had.
func (s *Service) ResetPeak() error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID()), []byte("5"), 0); err != nil {
		return errors.Join(errNoMemory, err)
	}
	return nil
}
