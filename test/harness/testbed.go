package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

const (
	// startTimeout is for a process to become ready on a busy machine.
	startTimeout = time.Minute
	// StopTimeout is for a process to end after SIGTERM.
	StopTimeout = 30 * time.Second
)

// closer is the environment of a trial.
type closer interface {
	comparable
	Close(ctx context.Context, keep bool) error
}

// result is the report of a trial.
type result interface{ Failure() error }

// Run opens the environment of a trial, carries out the trial in it, and closes it, also after an error. It returns a
// report if the trial ran to its end, whether it failed or not. The files of a trial that failed are kept.
func Run[E closer, R result](
	ctx context.Context, open func(context.Context) (E, error), carryOut func(context.Context, E) (R, error),
) (report R, err error) {
	var none E
	e, err := open(ctx)
	if e != none {
		defer func() {
			passed := err == nil && report.Failure() == nil
			err = errors.Join(err, e.Close(ctx, !passed))
		}()
	}
	if err != nil {
		return report, err
	}
	return carryOut(ctx, e)
}

// StartDatabase starts a private server, or uses the one of the options. Close removes a private one.
func (e *Env) StartDatabase(ctx context.Context, o postgres.Options) (*postgres.Server, postgres.Info, error) {
	o.Progress = e.progress
	server, remove, err := dbtest.StartTemporary(ctx, o)
	if err != nil {
		return nil, postgres.Info{}, fmt.Errorf("starting a database: %w", err)
	}
	e.OnClose(func(context.Context) error { return remove() })
	info, err := postgres.Describe(ctx, server.URL)
	return server, info, err
}

// StartNATS starts the NATS server of Build with a directory of its own, and connects to it.
func (e *Env) StartNATS(ctx context.Context) (*proctest.NATS, jetstream.JetStream, error) {
	log, err := e.LogFile("nats")
	if err != nil {
		return nil, nil, err
	}
	streams := filepath.Join(e.Dir, "streams")
	if err := os.MkdirAll(streams, 0o750); err != nil {
		return nil, nil, fmt.Errorf("creating the directory of the streams: %w", err)
	}
	nats, err := proctest.StartNATS(ctx, e.Programs.NATSServer, streams, log)
	if err != nil {
		return nil, nil, err
	}
	e.OnClose(func(context.Context) error {
		if nats.Ended() {
			return nil // A fault or the trial ended it.
		}
		_, err := nats.Stop(StopTimeout)
		return err
	})
	conn, js, err := Connect(nats.URL)
	if err != nil {
		return nil, nil, err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	return nats, js, nil
}

// Process is a process of roomsensor under test. It keeps its addresses when it is started again.
type Process struct {
	*proctest.Process
	Name         string
	Address, Ops string
	command      proctest.Command
}

// NewProcess returns a process that is not started. The settings name the database and NATS. Close ends it.
func (e *Env) NewProcess(name, program string, settings []string, args ...string) (p *Process, err error) {
	p = &Process{Name: name}
	for _, address := range []*string{&p.Address, &p.Ops} {
		if *address, err = proctest.FreeAddress(); err != nil {
			return nil, err
		}
	}
	log, err := e.LogFile(name)
	if err != nil {
		return nil, err
	}
	p.command = proctest.Command{Path: program, Args: args, Log: log, Env: append([]string{
		"API_ADDR=" + p.Address, "INGEST_ADDR=" + p.Address, "DASHBOARD_ADDR=" + p.Address, "OPS_ADDR=" + p.Ops,
	}, settings...)}
	e.OnClose(func(context.Context) error { return p.End() })
	return p, nil
}

// URL is the address of the API, the receiver or the dashboard.
func (p *Process) URL() string { return "http://" + p.Address }

// Launch starts the process, and does not wait until it is ready.
func (p *Process) Launch() (err error) {
	p.Process, err = proctest.Start(p.command)
	return err
}

// Start starts the process and waits until it is ready.
func (p *Process) Start(ctx context.Context) error {
	if err := p.Launch(); err != nil {
		return err
	}
	return p.WhenReady(ctx)
}

// WhenReady waits until the process is ready.
func (p *Process) WhenReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.AwaitReady(ctx, p.Ops); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// End stops the process. It does nothing if the process was not started, or ended by itself.
func (p *Process) End() error {
	if p.Process == nil || p.Ended() {
		return nil
	}
	_, err := p.Stop(StopTimeout)
	return err
}
