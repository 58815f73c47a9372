package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// shutdownTimeout is for everything that a process still has to do once it was
// told to end. Deployments kill after 30 s; what is left is for a margin.
const shutdownTimeout = 20 * time.Second

// lifecycle is one process: what runs in it, and what closes it, in the order
// in which it started.
type lifecycle struct {
	log     zerolog.Logger
	group   *errgroup.Group
	work    context.Context //nolint:containedctx // Lives as long as the process; ends after the closers.
	closers []closer
}

type closer struct {
	name  string
	close func(ctx context.Context) error
}

// push adds what closes something that was just started.
func (l *lifecycle) push(name string, shut func(ctx context.Context) error) {
	l.closers = append(l.closers, closer{name, shut})
}

// run starts something that runs until its closer ends it, or until the
// context ends that it gets. An error, and only an error, ends the process.
func (l *lifecycle) run(name string, work func(ctx context.Context) error) {
	l.group.Go(func() error {
		if err := work(l.work); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// background runs something until its closer ends it and waits for its end.
func background(l *lifecycle, name string, work func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(l.work)
	done := make(chan struct{})
	l.push(name, func(closing context.Context) error {
		stop()
		select {
		case <-done:
			return nil
		case <-closing.Done():
			return closing.Err()
		}
	})
	l.run(name, func(context.Context) error {
		defer close(done)
		return work(ctx)
	})
}

// supervise starts a process and ends it in order when ctx ends or when a part
// of it fails: the closers run in reverse under one deadline, and only then is
// work that still runs cancelled. Being told to end is no error.
func supervise(ctx context.Context, log zerolog.Logger, start func(context.Context, *lifecycle) error) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, work := errgroup.WithContext(work)
	l := &lifecycle{log: log, group: group, work: work}

	starting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(work, stop)() // A part that fails ends a start that waits for another.
	err := start(starting, l)
	if err == nil {
		<-starting.Done()
	}
	if err = withoutEnd(ctx, work, err); err != nil {
		log.Error().Err(err).Msg("cannot start")
	}
	closeErr := l.close(context.WithoutCancel(ctx))
	cancel()
	return errors.Join(err, group.Wait(), closeErr)
}

// withoutEnd forgets the error of a start that was told to end, and of one that
// ended because another part of the process failed, which says why itself.
func withoutEnd(ctx, work context.Context, err error) error {
	if ctx.Err() != nil || (work.Err() != nil && errors.Is(err, context.Canceled)) {
		return nil //nolint:nilerr // It says nothing new.
	}
	return err
}

// close runs the closers in reverse. Each gets what is left of the time, and
// all of them run, whatever the others say.
func (l *lifecycle) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	l.log.Info().Msg("shutting down")
	var errs []error
	for _, c := range slices.Backward(l.closers) {
		if err := c.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", c.name, err))
		}
	}
	l.log.Info().Msg("stopped")
	return errors.Join(errs...)
}

// closing makes a closer of a function that takes its time. Past the deadline
// it goes on alone, and ends when work is cancelled.
func closing(shut func()) func(ctx context.Context) error {
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

// every calls a function at once and then again and again, until ctx ends,
// which is no error.
func every(ctx context.Context, pause time.Duration, do func()) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
