package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/procs"
)

// world is everything that runs in a trial.
type world struct {
	trial.Journal
	options Options
	dir     string
	remove  bool // dir, at a clean end

	network  *network
	members  map[string]*container
	ops      map[string]string // addresses on this machine of the members that have one
	database *pair
	// databaseURL and queueURL are for members.
	databaseURL, queueURL string
	receivers, apis       *balancer
	trial                 *trial.Service
	fleet                 *trial.Fleet
	archive               *archive

	closed []func(context.Context) error
}

func newWorld(o Options) (*world, error) {
	w := &world{options: o, dir: o.Dir, members: map[string]*container{}, ops: map[string]string{}}
	if w.options.Progress == nil {
		w.options.Progress = io.Discard
	}
	w.Progress = w.options.Progress
	w.trial = &trial.Service{Program: o.Program, AckWait: o.AckWait, Say: w.Say, Unexpected: w.Unexpected}
	if w.dir != "" {
		return w, os.MkdirAll(w.dir, 0o750) //nolint:wrapcheck // It names the directory.
	}
	var err error
	w.remove = true
	w.dir, err = os.MkdirTemp("", "roomsensor-cluster-")
	return w, err //nolint:wrapcheck // Likewise.
}

func (w *world) push(shut func(context.Context) error) { w.closed = append(w.closed, shut) }

// closeTimeout is for everything that must go at the end, also of a trial that was told to end.
const closeTimeout = 2 * time.Minute

// close ends everything, the last first. The logs stay where keep asks for it.
func (w *world) close(ctx context.Context, keep bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	if keep || !w.remove {
		for _, c := range w.members {
			errs = append(errs, c.saveLog(ctx, w.dir))
		}
		w.Say("the logs are in %s", w.dir)
	}
	for _, shut := range slices.Backward(w.closed) {
		errs = append(errs, shut(ctx))
	}
	if w.remove && !keep {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

// open starts everything, in the order of need.
func (w *world) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		w.prepare, w.startNetwork, w.startDatabase, w.startQueue, w.makeFleet, w.makeArchive, w.startService,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return w.await(ctx, "the whole cluster", w.whole)
}

// prepare finds the images and builds the program for the commands of operators.
func (w *world) prepare(ctx context.Context) (err error) {
	if w.options.Images == (Images{}) {
		if w.options.Images, err = Find(ctx, w.Say); err != nil {
			return err
		}
	}
	if w.trial.Program == "" {
		w.Say("building roomsensor")
		w.trial.Program, err = procs.Build(ctx, w.dir, procs.Roomsensor)
	}
	return err
}

func (w *world) startNetwork(ctx context.Context) (err error) {
	members := slices.Concat(databaseMembers, serviceMembers())
	for i := range queueSize {
		members = append(members, queueMember(i))
	}
	name := fmt.Sprintf("roomsensor-cluster-%d", os.Getpid())
	w.network, err = newNetwork(ctx, name, w.dir, members)
	if w.network != nil {
		w.push(w.network.remove)
	}
	return err
}

// start starts a member, in the place of one of the same name if there was one.
func (w *world) start(ctx context.Context, p *plan) error {
	if old := w.members[p.member]; old != nil {
		if err := old.remove(ctx); err != nil {
			return err
		}
	}
	w.Say("starting %s", p.member)
	c, err := w.network.start(ctx, p)
	if c != nil && w.members[p.member] == nil {
		w.push(func(ctx context.Context) error { return w.members[p.member].remove(ctx) })
	}
	if c != nil {
		w.members[p.member] = c
	}
	return err
}

func (w *world) makeFleet(ctx context.Context) (err error) {
	w.fleet, err = w.trial.MakeFleet(ctx, w.options.Teams, w.options.Units)
	return err
}

const (
	// patience is for whatever must come back by itself, on a machine that may be busy.
	patience = 10 * time.Minute
	// lookEvery is how often it is looked for.
	lookEvery = 200 * time.Millisecond
)

// await waits until there is nothing to complain about.
func (w *world) await(ctx context.Context, what string, complaint func(context.Context) error) error {
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if last = complaint(ctx); last == nil {
			return nil
		}
		if err := trial.Pause(ctx, lookEvery); err != nil {
			return errors.Join(err, last)
		}
	}
	return fmt.Errorf("waiting for %s: %w", what, last)
}

// whole is nil when the queue has all its copies and every process says that it is ready.
func (w *world) whole(ctx context.Context) error {
	if err := w.queueWhole(ctx); err != nil {
		return err
	}
	return w.serviceReady(ctx)
}

// survivors notes the members that ended by themselves.
func (w *world) survivors(ctx context.Context) error {
	for name, c := range w.members {
		runs, err := c.runs(ctx)
		if err != nil {
			return err
		}
		if !runs && !c.down {
			w.Unexpected("%s ended by itself", name)
		}
	}
	return nil
}
