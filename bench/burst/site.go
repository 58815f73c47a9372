package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/procs"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/schema"
)

// site is one installation: a database, a NATS server, a team with its devices.
type site struct {
	*ground
	dir      string
	url      string // of the database
	nats     *procs.NATS
	js       jetstream.JetStream
	queue    *queue.Queue
	operator *app.Operator

	team      uuid.UUID
	late      []uuid.UUID
	fresh     []uuid.UUID
	ingestKey string
	readKeys  []string

	mu      sync.Mutex // Workers start at once.
	closers []func() error
}

// newSite sets an installation up; close takes it down, also after an error.
func (g *ground) newSite(ctx context.Context, l *load, o *options) (s *site, err error) {
	s = &site{ground: g}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp(g.dir, "site-"); err != nil {
		return s, fmt.Errorf("making a place for a site: %w", err)
	}
	s.push(func() error { return os.RemoveAll(s.dir) })
	if err := s.openDatabase(ctx); err != nil {
		return s, err
	}
	if err := s.openQueue(ctx); err != nil {
		return s, err
	}
	return s, s.enlist(ctx, l, o)
}

func (s *site) push(shut func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, shut)
}

func (s *site) close() (err error) {
	for _, shut := range slices.Backward(s.closers) {
		err = errors.Join(err, shut())
	}
	s.closers = nil
	return err
}

func (s *site) openDatabase(ctx context.Context) error {
	address, drop, err := s.database(ctx)
	if err != nil {
		return err
	}
	s.url = address
	s.push(drop)
	if err := schema.Up(ctx, address, schema.Layout{}); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	s.operator, err = app.OpenOperator(ctx, config.Database{DatabaseURL: address})
	if err == nil {
		s.push(func() error { s.operator.Close(); return nil })
	}
	return err
}

func (s *site) openQueue(ctx context.Context) (err error) {
	log, err := s.logFile("nats")
	if err != nil {
		return err
	}
	if s.nats, err = procs.StartNATS(ctx, s.ground.nats, s.dir, log); err != nil {
		return err
	}
	s.push(func() error { _, err := s.nats.Stop(stopWithin); return err })
	conn, err := queue.Connect(s.nats.URL, "burst", zerolog.Nop())
	if err != nil {
		return err
	}
	s.push(func() error { conn.Close(); return nil })
	if err := await(ctx, func() bool { return conn.Status() == nats.CONNECTED }); err != nil {
		return err
	}
	if s.queue, err = queue.New(conn, queue.Config{Replicas: 1, MaxBytes: queue.DefaultMaxBytes}); err != nil {
		return err
	}
	if s.js, err = jetstream.New(conn); err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	return s.queue.Declare(ctx)
}

// lane is the tag that tells devices apart.
const lane = "lane"

// enlist makes the team, its keys and devices.
func (s *site) enlist(ctx context.Context, l *load, o *options) error {
	team, err := s.operator.CreateTeam(ctx, "Burst")
	if err != nil {
		return err
	}
	s.team = uuid.MustParse(team.ID)
	made, err := s.operator.CreateIngestKey(ctx, s.team, nil)
	if err != nil {
		return err
	}
	s.ingestKey = made.Key
	for range readKeys {
		key, err := s.operator.CreateAPIKey(ctx, app.KeyOptions{TeamID: s.team, Scope: roomsensor.ScopeRead})
		if err != nil {
			return err
		}
		s.readKeys = append(s.readKeys, key.Key)
	}
	if s.late, err = s.devices(ctx, l.fleet, "late"); err != nil {
		return err
	}
	s.fresh, err = s.devices(ctx, simulate.Fleet{Devices: o.Fresh, FirstHardwareID: firstFresh}, "fresh")
	return err
}

func (s *site) devices(ctx context.Context, f simulate.Fleet, tag string) (ids []uuid.UUID, err error) {
	for i := range f.Devices {
		made, err := s.operator.CreateDevice(ctx, app.DeviceOptions{
			TeamID: s.team, HardwareID: f.HardwareID(i), Metadata: map[string]string{lane: tag},
		})
		if err != nil {
			return nil, err
		}
		ids = append(ids, uuid.MustParse(made.DeviceID))
	}
	return ids, nil
}

// logFile takes what a process prints; nobody reads it unless something fails.
func (s *site) logFile(name string) (*os.File, error) {
	path := filepath.Join(s.dir, name+".log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // In a directory of ours.
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	s.push(f.Close)
	return f, nil
}

const (
	// stopWithin is what a process may take to end.
	stopWithin = 20 * time.Second
	// readKeys share the requests of the watchers: one key may ask 600 times in ten minutes.
	readKeys = 40
	pause    = 20 * time.Millisecond
)

// process runs a command of the program and waits until it is ready.
func (s *site) process(ctx context.Context, name string, args ...string) (*procs.Process, error) {
	ops, err := procs.FreeAddress()
	if err != nil {
		return nil, err
	}
	log, err := s.logFile(name)
	if err != nil {
		return nil, err
	}
	p, err := procs.Start(procs.Command{
		Path: s.roomsensor, Args: append(args, "--ops-addr", ops), Log: log,
		Env: []string{"DATABASE_URL=" + s.url, "NATS_URL=" + s.nats.URL, "LOG_LEVEL=warn"},
	})
	if err != nil {
		return nil, err
	}
	s.push(func() error { p.Kill(); return nil })
	return p, p.AwaitReady(ctx, ops)
}

// listener runs a command that listens under a flag, and returns its base URL.
func (s *site) listener(ctx context.Context, name, flag string, args ...string) (*procs.Process, string, error) {
	address, err := procs.FreeAddress()
	if err != nil {
		return nil, "", err
	}
	p, err := s.process(ctx, name, append(args, flag, address)...)
	return p, "http://" + address, err
}

// worker runs the n-th worker.
func (s *site) worker(ctx context.Context, n int) (*procs.Process, error) {
	return s.process(ctx, "worker-"+strconv.Itoa(n), "ingest", "--no-receiver")
}

// await waits until something holds.
func await(ctx context.Context, holds func() bool) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w", ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}
