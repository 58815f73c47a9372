package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"roomsensor/internal/process"
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

// Run sends the uploads of a simulated fleet and reports its progress. The end of Duration is not an error, and neither
// is an interrupt in live mode; an interrupt before the whole history was sent is one.
func Run(ctx context.Context, o Options, to Sink, progress io.Writer) error {
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Duration, errDurationOver)
		defer cancel()
	}
	plan := o.plan()
	r := &run{
		options: o,
		plan:    plan,
		sender:  NewPacedSender(to),
		meter:   newMeter(progress, plan.Measurements()),
	}
	err := r.sendAll(ctx)
	flushErr := r.sender.Close(ctx)
	r.meter.finish()
	if s, ok := to.(summarizer); ok {
		r.meter.printf("%s", s.Summary())
	}
	return cmp.Or(r.result(ctx, err), flushErr)
}

// run is one call of Run.
type run struct {
	options  Options
	plan     simulate.Plan
	sender   *PacedSender
	meter    *meter
	complete bool // the whole history was sent
}

// sendAll sends the history and, in live mode, what follows it.
func (r *run) sendAll(ctx context.Context) error {
	start := time.Now()
	for u := range r.plan.Uploads() {
		var due time.Time
		if r.options.Rate > 0 {
			due = start.Add(r.spacing(r.meter.uploads))
		}
		if err := r.send(ctx, u, due); err != nil {
			return err
		}
	}
	r.complete = true
	if r.options.Mode != simulate.Live {
		return nil
	}
	return r.sendLive(ctx)
}

// spacing returns how long a number of uploads takes at the rate.
func (r *run) spacing(uploads int) time.Duration {
	return time.Duration(float64(uploads) / r.options.Rate * float64(time.Second))
}

// sendLive sends live uploads until ctx ends.
func (r *run) sendLive(ctx context.Context) error {
	fleet := r.options.Fleet
	devices := make([]*simulate.Device, fleet.Devices)
	for i := range devices {
		devices[i] = fleet.Device(i)
	}
	every := roomsensor.BucketLength
	if r.options.Rate > 0 {
		every = r.spacing(fleet.Devices)
	}
	for u := range simulate.LiveUploads(devices, time.Now(), every) {
		if err := r.send(ctx, u, u.SentAt); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) send(ctx context.Context, u *simulate.Upload, due time.Time) error {
	if err := r.sender.Send(ctx, u, due); err != nil {
		return err
	}
	r.meter.add(len(u.Readings))
	return nil
}

// result returns the error of a run, and nil for an end that was requested.
func (r *run) result(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case r.complete, errors.Is(context.Cause(ctx), errDurationOver):
		return nil
	}
	return process.Refusef("Interrupted after %d uploads. The history is not complete.", r.meter.uploads)
}

// meter reports the progress once per second.
type meter struct {
	to                io.Writer
	expected          int // readings; 0 is unbounded
	uploads           int
	readings          int
	started, reported time.Time
}

func newMeter(to io.Writer, expected int) *meter {
	now := time.Now()
	return &meter{to: to, expected: expected, started: now, reported: now}
}

func (m *meter) add(readings int) {
	m.uploads++
	m.readings += readings
	if now := time.Now(); now.Sub(m.reported) >= time.Second {
		m.reported = now
		m.printf("%d uploads with %d readings%s, %.0f readings/s",
			m.uploads, m.readings, m.share(), float64(m.readings)/now.Sub(m.started).Seconds())
	}
}

// share returns how much of the history was sent. Missing readings lower it and duplicate uploads raise it.
func (m *meter) share() string {
	if m.expected == 0 || m.readings > m.expected {
		return ""
	}
	return fmt.Sprintf(" (%d %% of the history)", 100*m.readings/m.expected)
}

func (m *meter) finish() {
	m.printf("sent %d uploads with %d readings in %s",
		m.uploads, m.readings, time.Since(m.started).Round(10*time.Millisecond))
}

func (m *meter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(m.to, "simulate: "+format+"\n", args...) // A closed stderr does not stop the run.
}
