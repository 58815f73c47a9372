package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"roomsensor/internal/ops"
	"roomsensor/internal/roomsensor"
)

// Process is what a process gets from outside beside its configuration, so
// that several can run in one program. Its zero value is silent.
type Process struct {
	Log     zerolog.Logger
	Version string
	// Listen opens the listeners; nil is TCP. Tests and the demo give their own.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Started is called with each address once something listens on it: "ops"
	// first, then "api" or "receiver".
	Started func(name string, bound net.Addr)
	// Ready is called once, when the process is ready for the first time.
	Ready func()
}

func (p *Process) listen(ctx context.Context, name, address string) (net.Listener, error) {
	listen := p.Listen
	if listen == nil {
		listen = listenTCP
	}
	l, err := listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s for %s: %w", address, name, err)
	}
	if p.Started != nil {
		p.Started(name, l.Addr())
	}
	return l, nil
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address) //nolint:wrapcheck // Its caller wraps.
}

// newRegistry makes the metrics of a process, with those of the runtime.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}

// startOps opens the ops listener, which is the first thing that a process does
// and the last that it closes, and begins to probe what the process needs.
func (p *Process) startOps(
	ctx context.Context, l *lifecycle, address string, health *ops.Health, metrics prometheus.Gatherer,
) error {
	listener, err := p.listen(ctx, "ops", address)
	if err != nil {
		return err
	}
	server := ops.New(health, metrics)
	l.push("ops", server.Shutdown)
	l.run("ops", func(context.Context) error { return server.Serve(listener) })
	l.run("health", func(ctx context.Context) error {
		health.Run(ctx)
		return nil
	})
	return nil
}

// whenThere does what needs everything to be there, and again when something
// was lost meanwhile.
func (p *Process) whenThere(ctx context.Context, health *ops.Health, do func() error) error {
	for attempt := 0; ; attempt++ {
		if err := health.Await(ctx); err != nil {
			return err
		}
		err := do()
		var passing *roomsensor.Error
		if !errors.As(err, &passing) || ctx.Err() != nil {
			return err
		}
		p.Log.Warn().Err(err).Msg("could not start yet, trying again")
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// The pauses between two attempts to start grow and are jittered, so that
// replicas do not come back to a database in the same moment.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

func pause(ctx context.Context, attempt int) error {
	longest := min(firstPause<<min(attempt, 8), lastPause)
	return sleep(ctx, longest/2+rand.N(longest/2)) //nolint:gosec // A pause is no secret.
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// serving says that the process serves, and that it will not as soon as it is
// told to end.
func (p *Process) serving(l *lifecycle, health *ops.Health) {
	l.push("readiness", func(context.Context) error {
		health.Stopping()
		return nil
	})
	health.Serving()
	l.run("readiness", func(ctx context.Context) error {
		if health.AwaitReady(ctx) != nil {
			return nil //nolint:nilerr // It ended before it was ready.
		}
		p.Log.Info().Msg("ready")
		if p.Ready != nil {
			p.Ready()
		}
		return nil
	})
}
