package app

import (
	"cmp"
	"context"
	"io"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// SimulateOptions say what is made up.
type SimulateOptions struct {
	Fleet simulate.Fleet
	Mode  simulate.Mode
	// History is how much of the past is sent, up to Until. Live goes on from
	// now after it.
	History time.Duration
	Until   time.Time
	// Rate is the most uploads a second; 0 is as fast as they are taken, in
	// live mode one upload of each device every 5 minutes.
	Rate float64
	// Duration ends the run early; 0 does not.
	Duration time.Duration
}

// plan is the history; in live mode it is sent as Backfill sends it.
func (o *SimulateOptions) plan() simulate.Plan {
	mode := o.Mode
	if mode == simulate.Live {
		mode = simulate.Backfill
	}
	return simulate.Plan{Fleet: o.Fleet, Mode: mode, From: o.Until.Add(-o.History), Until: o.Until}
}

// Simulate sends the uploads of a simulated fleet and reports what it does to
// progress. The end of Duration is no error, and neither is an interrupt of
// live mode; one that comes before the history was sent is.
func Simulate(ctx context.Context, o SimulateOptions, to UploadSink, progress io.Writer) error {
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Duration, errDurationOver)
		defer cancel()
	}
	plan := o.plan()
	s := &simulation{
		options: o,
		plan:    plan,
		sender:  newPacedSender(to),
		meter:   newMeter(progress, plan.Measurements()),
	}
	err := s.everything(ctx)
	last := s.sender.close(ctx)
	s.meter.finish()
	return cmp.Or(s.verdict(ctx, err), last)
}

// simulation is one run of Simulate.
type simulation struct {
	options SimulateOptions
	plan    simulate.Plan
	sender  *pacedSender
	meter   *meter
	past    bool // the whole history was sent
}

func (s *simulation) everything(ctx context.Context) error {
	start := time.Now()
	for u := range s.plan.Uploads() {
		var due time.Time
		if s.options.Rate > 0 {
			due = start.Add(s.spacing(s.meter.uploads))
		}
		if err := s.send(ctx, u, due); err != nil {
			return err
		}
	}
	s.past = true
	if s.options.Mode != simulate.Live {
		return nil
	}
	return s.live(ctx)
}

// spacing is the time that a number of uploads takes by the rate.
func (s *simulation) spacing(uploads int) time.Duration {
	return time.Duration(float64(uploads) / s.options.Rate * float64(time.Second))
}

// live sends for ever.
func (s *simulation) live(ctx context.Context) error {
	fleet := s.options.Fleet
	devices := make([]*simulate.Device, fleet.Devices)
	for i := range devices {
		devices[i] = fleet.Device(i)
	}
	every := roomsensor.BucketLength
	if s.options.Rate > 0 {
		every = s.spacing(fleet.Devices)
	}
	for u := range simulate.LiveUploads(devices, time.Now(), every) {
		if err := s.send(ctx, u, u.SentAt); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) send(ctx context.Context, u *simulate.Upload, due time.Time) error {
	if err := s.sender.send(ctx, u, due); err != nil {
		return err
	}
	s.meter.add(len(u.Readings))
	return nil
}

// verdict tells an end that was asked for from a failure.
func (s *simulation) verdict(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case s.past, context.Cause(ctx) == errDurationOver: //nolint:errorlint // It is this very value.
		return nil
	}
	return refusef("Interrupted after %d uploads. The history is not complete.", s.meter.uploads)
}

const errDurationOver roomsensor.RefusedError = "The duration is over."
