// Package send sends the uploads of simulated devices to standard output, NATS or a receiver, at a given rate.
//
//   - send.go: Run, which sends a history and then live uploads when they are due, and reports its progress
//   - sink.go: Sink, the destination of uploads: standard output, or the stream
//   - receiver.go: the sink that posts to a receiver and retries
package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// Options describe the uploads of a run.
type Options struct {
	Fleet simulate.Fleet
	Mode  simulate.Mode
	// History is how much of the past is sent, up to Until. Live mode continues from now after it.
	History time.Duration
	Until   time.Time
	// Rate is the maximum of uploads per second. 0 means unlimited; in live mode, one upload per device every 5 minutes.
	Rate float64
	// Duration ends the run early; 0 does not.
	Duration time.Duration
}

// plan returns the history. In live mode, it is sent as in backfill mode.
func (o *Options) plan() simulate.Plan {
	mode := o.Mode
	if mode == simulate.Live {
		mode = simulate.Backfill
	}
	return simulate.Plan{Fleet: o.Fleet, Mode: mode, From: o.Until.Add(-o.History), Until: o.Until}
}

var errDurationOver = errors.New("the duration is over")

const (
	// maxBuffered limits the time of an upload in the buffer of a sink.
	maxBuffered = 100 * time.Millisecond
	// lastFlushTimeout limits the flush of the sink of an interrupted run.
	lastFlushTimeout = 5 * time.Second
)

// Run sends the uploads of a simulated fleet and reports its progress. The end of Duration is not an error, and neither
// is an interrupt in live mode; an interrupt before the whole history was sent is one.
func Run(ctx context.Context, o Options, to Sink, progress io.Writer) error {
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Duration, errDurationOver)
		defer cancel()
	}
	now := time.Now()
	r := &run{options: o, to: to, progress: progress, started: now, reported: now, flushed: now}
	err := r.sendAll(ctx)
	flushErr := r.lastFlush(ctx)
	r.printf("sent %d uploads with %d readings in %s",
		r.uploads, r.readings, time.Since(r.started).Round(10*time.Millisecond))
	if s, ok := to.(*receiverSink); ok {
		r.printf("%s", s.summary())
	}
	switch {
	case ctx.Err() == nil:
	case r.complete, errors.Is(context.Cause(ctx), errDurationOver):
		err = nil
	default:
		err = process.Refusef("Interrupted after %d uploads. The history is not complete.", r.uploads)
	}
	return cmp.Or(err, flushErr)
}

// run is one call of Run.
type run struct {
	options  Options
	to       Sink
	progress io.Writer
	expected int  // readings of the history without gaps
	complete bool // the whole history was sent

	uploads, readings          int // sent
	started, reported, flushed time.Time
}

// sendAll sends the history and, in live mode, what follows it until ctx ends.
func (r *run) sendAll(ctx context.Context) error {
	plan := r.options.plan()
	r.expected = plan.Measurements()
	for u := range plan.Uploads() {
		var due time.Time
		if r.options.Rate > 0 {
			due = r.started.Add(r.spacing(r.uploads))
		}
		if err := r.send(ctx, u, due); err != nil {
			return err
		}
	}
	r.complete = true
	if r.options.Mode != simulate.Live {
		return nil
	}
	devices := make([]*simulate.Device, plan.Devices)
	for i := range devices {
		devices[i] = plan.Device(i)
	}
	every := roomsensor.BucketLength
	if r.options.Rate > 0 {
		every = r.spacing(len(devices))
	}
	for u := range simulate.LiveUploads(devices, time.Now(), every) {
		if err := r.send(ctx, u, u.SentAt); err != nil {
			return err
		}
	}
	return nil
}

// spacing returns how long a number of uploads takes at the rate.
func (r *run) spacing(uploads int) time.Duration {
	return time.Duration(float64(uploads) / r.options.Rate * float64(time.Second))
}

// send passes on an upload when it is due; the zero time means at once.
func (r *run) send(ctx context.Context, u *simulate.Upload, due time.Time) error {
	if err := r.wait(ctx, time.Until(due)); err != nil {
		return err
	}
	if err := r.to.Send(ctx, u); err != nil {
		return err
	}
	r.uploads++
	r.readings += len(u.Readings)
	if now := time.Now(); now.Sub(r.reported) >= time.Second {
		r.reported = now
		r.printf("%d uploads with %d readings%s, %.0f readings/s",
			r.uploads, r.readings, r.share(), float64(r.readings)/now.Sub(r.started).Seconds())
	}
	return nil
}

// wait waits for a duration. It flushes the sink first if an upload would stay in its buffer for longer than
// maxBuffered.
func (r *run) wait(ctx context.Context, left time.Duration) error {
	if left <= 0 {
		return ctx.Err()
	}
	if now := time.Now(); left >= maxBuffered || now.Sub(r.flushed) >= maxBuffered {
		r.flushed = now
		if err := r.to.Flush(ctx); err != nil {
			return err
		}
	}
	return retry.Sleep(ctx, left)
}

// lastFlush flushes the sink, also if the run was interrupted.
func (r *run) lastFlush(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
		defer cancel()
	}
	return r.to.Flush(ctx)
}

// share returns how much of the history was sent. Missing readings lower it and duplicate uploads raise it.
func (r *run) share() string {
	if r.expected == 0 || r.readings > r.expected {
		return ""
	}
	return fmt.Sprintf(" (%d %% of the history)", 100*r.readings/r.expected)
}

func (r *run) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, "simulate: "+format+"\n", args...) // A closed stderr does not stop the run.
}
