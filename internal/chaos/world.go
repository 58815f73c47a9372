package chaos

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/procs"
)

// stopPatience is what a process of ours gets to end in order.
const stopPatience = 30 * time.Second

// world is everything that runs in a trial.
type world struct {
	trial.Journal
	options Options
	dir     string
	remove  bool // dir, at a clean end

	programs Programs
	database *database
	queue    *queueServer
	trial    *trial.Service
	fleet    *trial.Fleet
	services map[string]*service // of roomsensor, by name

	closed []func() error
}

func newWorld(o Options) (*world, error) {
	w := &world{options: o, dir: o.Dir, services: map[string]*service{}}
	if w.options.Progress == nil {
		w.options.Progress = io.Discard
	}
	w.Progress = w.options.Progress
	if w.dir != "" {
		return w, os.MkdirAll(w.dir, 0o750) //nolint:wrapcheck // It names the directory.
	}
	var err error
	w.remove = true
	w.dir, err = os.MkdirTemp("", "roomsensor-chaos-")
	return w, err //nolint:wrapcheck // Likewise.
}

// died is called for a process that ended without being told to.
func (w *world) died(name string) { w.Unexpected("%s ended by itself", name) }

func (w *world) push(shut func() error) { w.closed = append(w.closed, shut) }

// close ends everything, the last first. The directory stays where keep asks for it.
func (w *world) close(keep bool) error {
	var errs []error
	for _, shut := range slices.Backward(w.closed) {
		errs = append(errs, shut())
	}
	if w.remove && !keep {
		errs = append(errs, os.RemoveAll(w.dir))
	} else {
		w.Say("logs and streams are in %s", w.dir)
	}
	return errors.Join(errs...)
}

// open builds and starts everything, in the order of need.
func (w *world) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		w.build, w.startDatabase, w.startQueue, w.connect, w.makeFleet, w.startServices,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect sees the service as those do who use it.
func (w *world) connect(context.Context) error {
	conn, js, err := trial.Connect(w.queue.url)
	if err != nil {
		return err
	}
	w.push(func() error { conn.Close(); return nil })
	w.trial = &trial.Service{
		Program: w.programs.Roomsensor, DatabaseURL: w.database.address, QueueURL: w.queue.url, JS: js,
		AckWait: w.options.AckWait, Say: w.Say, Unexpected: w.Unexpected,
	}
	return nil
}

func (w *world) makeFleet(ctx context.Context) (err error) {
	w.fleet, err = w.trial.MakeFleet(ctx, w.options.Teams, w.options.Units)
	return err
}

func (w *world) build(ctx context.Context) (err error) {
	if w.programs = w.options.Programs; w.programs.Roomsensor != "" {
		return nil
	}
	w.Say("building roomsensor and nats-server")
	w.programs, err = Build(ctx, w.dir)
	return err
}

// Programs are the paths of what is built from this source.
type Programs struct{ Roomsensor, NATSServer string }

// Build compiles roomsensor, with the switches of a trial in it, and nats-server.
func Build(ctx context.Context, dir string) (p Programs, err error) {
	if p.Roomsensor, err = procs.Build(ctx, dir, procs.Roomsensor, "-tags=chaos"); err != nil {
		return p, err
	}
	p.NATSServer, err = procs.Build(ctx, dir, procs.NATSServer)
	return p, err
}
