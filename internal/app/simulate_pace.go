package app

import (
	"context"
	"time"

	"roomsensor/internal/simulate"
)

// UploadSink takes the uploads of simulated devices.
type UploadSink interface {
	// Send hands one upload over. The sink may hold it back to send it with
	// others, and does not keep line.
	Send(ctx context.Context, hardwareID string, line []byte) error
	// Flush returns once everything that was handed over is stored.
	Flush(ctx context.Context) error
}

const (
	// flushAfter is how long an upload may be held back to go with others.
	flushAfter = 100 * time.Millisecond
	// lastFlush is how long an interrupted run may take to hand over the rest.
	lastFlush = 5 * time.Second
)

// pacedSender hands uploads to a sink when they are due.
type pacedSender struct {
	to      UploadSink
	line    []byte
	flushed time.Time
}

func newPacedSender(to UploadSink) *pacedSender { return &pacedSender{to: to, flushed: time.Now()} }

// send hands an upload over when it is due; the zero time is at once.
func (p *pacedSender) send(ctx context.Context, u *simulate.Upload, due time.Time) error {
	if err := p.wait(ctx, time.Until(due)); err != nil {
		return err
	}
	p.line = u.AppendJSON(p.line[:0])
	return p.to.Send(ctx, u.HardwareID, p.line)
}

// wait lets time pass. What was held back goes first.
func (p *pacedSender) wait(ctx context.Context, left time.Duration) error {
	if left <= 0 {
		return ctx.Err()
	}
	if now := time.Now(); left >= flushAfter || now.Sub(p.flushed) >= flushAfter {
		p.flushed = now
		if err := p.to.Flush(ctx); err != nil {
			return err
		}
	}
	return sleep(ctx, left)
}

// close hands over what was held back, also when the run was interrupted.
func (p *pacedSender) close(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	if ctx.Err() != nil {
		cancel()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	}
	defer cancel()
	return p.to.Flush(ctx)
}
