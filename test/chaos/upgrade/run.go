package upgrade

import (
	"context"
	"errors"
	"sync"
	"time"

	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// Run carries out a trial. It returns a report if the trial ran to its end, whether it failed or not.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e, err := newEnv(ctx, o)
	if e != nil {
		defer func() {
			passed := err == nil && report.Failure() == nil
			err = errors.Join(err, e.Close(ctx, !passed))
		}()
	}
	if err != nil {
		return nil, err
	}
	requests, err := ledger.Make(ledger.Options{
		Seed: o.Seed, Readings: o.Readings, Span: o.Span, Now: e.fleet.Now, Teams: o.Teams, Units: e.fleet.Units,
	})
	if err != nil {
		return nil, err
	}
	reader, err := newReader(e)
	if err != nil {
		return nil, err
	}
	trial := harness.NewTrial(e.service, e.fleet, requests)
	if err := e.upgradeUnderLoad(ctx, trial, requests, reader); err != nil {
		return nil, err
	}
	if err := trial.Verify(ctx); err != nil {
		return nil, err
	}
	return newReport(e, trial.Result(e.description), reader.calls), nil
}

// upgradeUnderLoad carries out the stages while clients upload and read, and waits until the workers are done.
func (e *env) upgradeUnderLoad(
	ctx context.Context, trial *harness.Trial, requests []*ledger.Request, reader *reader,
) error {
	if err := trial.Follow(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	done := make(chan struct{})
	trial.Stop = done
	var failure error
	group.Go(func() { trial.Watcher.Run(watching) })
	group.Go(func() { reader.run(watching) })
	group.Go(func() {
		defer close(done)
		failure = e.upgrade(ctx)
	})
	e.Logf("sending up to %d requests in %s", len(requests), e.options.Span)
	trial.Send(ctx, requests)
	select {
	case <-done:
	default:
		e.Unexpected("all uploads were sent before the last stage ended: the span is too short")
		<-done
	}
	if failure != nil {
		return failure
	}
	// The program of this version replays the stream.
	e.service.Program = e.programs[newVersion]
	return trial.Settle(ctx)
}

// upgrade carries out the stages.
func (e *env) upgrade(ctx context.Context) error {
	for _, s := range []struct {
		name   string
		change func(context.Context) error
	}{
		{"old version", func(context.Context) error { return nil }},
		{"migrations of the new version", func(ctx context.Context) error { return e.migrate(ctx, newVersion) }},
		{"one replica of each version", func(ctx context.Context) error { return e.replace(ctx, newVersion) }},
		{"new version", func(ctx context.Context) error { return e.replace(ctx, newVersion) }},
		{"back: one replica of each version", func(ctx context.Context) error { return e.replace(ctx, oldVersion) }},
		{"back: old version on the new tables", func(ctx context.Context) error { return e.replace(ctx, oldVersion) }},
		{"back: migrate up of the old version", func(ctx context.Context) error { return e.migrate(ctx, oldVersion) }},
		{"forward: migrate up of the new version", func(ctx context.Context) error { return e.migrate(ctx, newVersion) }},
		{"forward: new version", func(ctx context.Context) error { return e.replaceAll(ctx, newVersion) }},
	} {
		e.Logf("%s", s.name)
		e.stages.begin(s.name)
		began := time.Now()
		if err := s.change(ctx); err != nil {
			return err
		}
		e.stages.changed(time.Since(began))
		if err := e.hold(ctx); err != nil {
			return err
		}
	}
	return nil
}
