package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/config"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// ShutdownTimeout bounds the whole shutdown of a process. Deployments kill a process 30 s after SIGTERM, which leaves a
// margin of 10 s.
const ShutdownTimeout = 20 * time.Second

// startBackoff is the delay between two attempts to start while a dependency is overloaded.
var startBackoff = retry.Backoff{First: 250 * time.Millisecond, Max: 5 * time.Second}

// Options are what a process gets from its caller beside its configuration, so that several processes can run in one
// program. The zero value logs nothing.
type Options struct {
	Log     zerolog.Logger
	Version string
	// LogLevel is the sampler of Log, if the level may change while the process runs.
	LogLevel *LogLevel
	// Listen opens the listeners; nil is ListenTCP. Tests and the demo pass their own.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Started is called with each address once the process listens on it: "ops" first, then "api", "dashboard" or
	// "receiver".
	Started func(name string, bound net.Addr)
	// Ready is called once, when the process becomes ready for the first time.
	Ready func()
	// Metrics takes the metrics of the process and serves them; nil is a registry of its own.
	Metrics Registry
}

// Process is a running process: its work, its dependencies and its closers.
type Process struct {
	Options
	Health *Health

	group   *errgroup.Group
	drain   time.Duration   // 0 until the process serves
	work    context.Context //nolint:containedctx // Lives as long as the process; canceled after the closers have run.
	closers []closer
}

// closer stops or closes one thing that the process started.
type closer struct {
	name  string
	close func(ctx context.Context) error
}

// Run starts a process and stops it in order when ctx ends or when a part of it fails: if nothing failed, it goes on
// serving for the delay that Serving was given. Then the closers run in reverse under ShutdownTimeout, and only after
// that is work that still runs canceled. A stop that ctx requests is not an error.
func Run(ctx context.Context, o Options, start func(ctx context.Context, p *Process) error) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, work := errgroup.WithContext(work)
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	p := &Process{Options: o, Health: NewHealth(o.Log), group: group, work: work}
	p.addProcessMetrics()

	starting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(work, stop)() // A part that fails also ends a start that waits for another part.
	err := start(starting, p)
	if err == nil {
		<-starting.Done()
		p.drainFor(work)
	}
	if err = startError(ctx, work, err); err != nil {
		p.Log.Error().Err(err).Msg("start failed")
	}
	closeErr := p.close(context.WithoutCancel(ctx))
	cancel()
	return errors.Join(err, group.Wait(), closeErr)
}

// drainFor goes on serving for the drain delay while the process is not ready, so that load balancers that poll /readyz
// send no request to a closed listener. It ends when a part of the process fails.
func (p *Process) drainFor(work context.Context) {
	if p.drain == 0 || work.Err() != nil {
		return
	}
	p.Health.Stopping()
	p.Log.Info().Dur("delay_ms", p.drain).Msg("draining")
	_ = retry.Sleep(work, p.drain)
}

// startError drops the error of a start that ctx canceled, and of one that was canceled because another part of the
// process failed: that part reports its own error.
func startError(ctx, work context.Context, err error) error {
	if ctx.Err() != nil || (work.Err() != nil && errors.Is(err, context.Canceled)) {
		return nil //nolint:nilerr // The cancellation is not the cause.
	}
	return err
}

// close runs all closers in reverse, also after one that fails. Each gets what is left of ShutdownTimeout.
func (p *Process) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ShutdownTimeout)
	defer cancel()
	p.Log.Info().Msg("shutting down")
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		if err := c.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", c.name, err))
		}
	}
	p.Log.Info().Msg("stopped")
	return errors.Join(errs...)
}

// OnClose registers the closer of something that was just started. Closers run in the reverse order of registration.
func (p *Process) OnClose(name string, shut func(ctx context.Context) error) {
	p.closers = append(p.closers, closer{name, shut})
}

// Go runs work until its closer ends it or its context ends. An error, and only an error, stops the process.
func (p *Process) Go(name string, work func(ctx context.Context) error) {
	p.group.Go(func() error {
		if err := work(p.work); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Background runs work and registers a closer that cancels its context and waits until it returns.
func (p *Process) Background(name string, work func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(p.work)
	done := make(chan struct{})
	p.OnClose(name, Closing(func() { stop(); <-done }))
	p.Go(name, func(context.Context) error {
		defer close(done)
		return work(ctx)
	})
}

// Closing makes a closer of a blocking function. After the deadline the function continues in the background; it
// returns once the process cancels its work.
func Closing(shut func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		done := make(chan struct{})
		go func() {
			defer close(done)
			shut()
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Bind listens on an address and reports it to Started. name is for errors and Started, flag is the setting that
// contains the address. The error of a port that is in use says how to find its process.
func (p *Process) Bind(ctx context.Context, name, flag, address string) (net.Listener, error) {
	listen := p.Listen
	if listen == nil {
		listen = ListenTCP
	}
	l, err := listen(ctx, address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s for %s: %w. Stop the process that uses the port, which %q shows, "+
			"or set --%s (%s) to another address", address, name, err, findListener(address), flag, config.Variable(flag))
	case err != nil:
		return nil, fmt.Errorf("listening on %s for %s: %w. Check --%s (%s)", address, name, err, flag, config.Variable(flag))
	}
	if p.Started != nil {
		p.Started(name, l.Addr())
	}
	return l, nil
}

// findListener returns the shell command that shows which process listens on the port of an address.
func findListener(address string) string {
	_, port, _ := net.SplitHostPort(address) // Somebody listens on it, so that it is valid.
	if runtime.GOOS == "linux" {
		return "ss -ltnp sport = :" + port
	}
	return "lsof -nP -sTCP:LISTEN -iTCP:" + port
}

// ListenTCP listens on a TCP address.
func ListenTCP(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address) //nolint:wrapcheck // Its caller wraps.
}

// ServeHTTP serves until shutdown and then finishes the requests in flight. Requests that are not finished by the
// deadline are canceled.
func (p *Process) ServeHTTP(name string, server *http.Server, listener net.Listener) {
	server.BaseContext = func(net.Listener) context.Context { return p.work }
	p.OnClose(name, func(ctx context.Context) error {
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("finishing requests: %w", err), server.Close())
		}
		return nil
	})
	p.Go(name, func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
}

// WhenReady calls do once all dependencies are available, and again after a backoff if it fails because one of them is
// overloaded or was lost meanwhile.
func (p *Process) WhenReady(ctx context.Context, do func() error) error {
	for attempt := 0; ; attempt++ {
		if err := p.Health.Await(ctx); err != nil {
			return err
		}
		err := do()
		var transient *roomsensor.Error
		if !errors.As(err, &transient) || ctx.Err() != nil {
			return err
		}
		p.Log.Warn().Err(err).Msg("could not start, retrying")
		if err := startBackoff.Sleep(ctx, attempt); err != nil {
			return err
		}
	}
}

// Serving marks the process as serving until its shutdown begins, and calls Ready once all dependencies are available.
// After the shutdown has begun, the process goes on serving for drain.
func (p *Process) Serving(drain time.Duration) {
	p.drain = drain
	p.OnClose("readiness", func(context.Context) error {
		p.Health.Stopping()
		return nil
	})
	p.Health.Serving()
	p.Go("readiness", func(ctx context.Context) error {
		if p.Health.AwaitReady(ctx) != nil {
			return nil //nolint:nilerr // The process stopped before it was ready.
		}
		p.Log.Info().Msg("ready")
		if p.Ready != nil {
			p.Ready()
		}
		return nil
	})
}
