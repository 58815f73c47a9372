package send

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/simulate"
)

// Sink is the destination of uploads.
type Sink interface {
	// Send passes on one upload. The sink may buffer it to send it with others, and does not retain line.
	Send(ctx context.Context, hardwareID string, line []byte) error
	// Flush returns once all uploads passed to Send are stored.
	Flush(ctx context.Context) error
}

// summarizer is a Sink that tells at the end what its destination has confirmed.
type summarizer interface{ Summary() string }

// lineSink prints uploads as JSON Lines.
type lineSink struct{ out *bufio.Writer }

// NewLineSink returns a sink that prints uploads as JSON Lines.
func NewLineSink(to io.Writer) Sink { return &lineSink{bufio.NewWriterSize(to, 1<<16)} }

func (s *lineSink) Send(_ context.Context, _ string, line []byte) error {
	_, err := s.out.Write(line)
	if err == nil {
		err = s.out.WriteByte('\n')
	}
	return outputError(err)
}

func (s *lineSink) Flush(context.Context) error { return outputError(s.out.Flush()) }

func outputError(err error) error {
	if err != nil {
		return fmt.Errorf("printing uploads: %w", err)
	}
	return nil
}

const (
	// maxBuffered limits the time of an upload in the buffer of a sink.
	maxBuffered = 100 * time.Millisecond
	// lastFlushTimeout limits the flush of the sink of an interrupted run.
	lastFlushTimeout = 5 * time.Second
)

// PacedSender passes uploads to a sink when they are due.
type PacedSender struct {
	to      Sink
	line    []byte
	flushed time.Time
}

// NewPacedSender returns a sender for a sink.
func NewPacedSender(to Sink) *PacedSender { return &PacedSender{to: to, flushed: time.Now()} }

// Send passes on an upload when it is due; the zero time means at once.
func (p *PacedSender) Send(ctx context.Context, u *simulate.Upload, due time.Time) error {
	if err := p.wait(ctx, time.Until(due)); err != nil {
		return err
	}
	p.line = u.AppendJSON(p.line[:0])
	return p.to.Send(ctx, u.HardwareID, p.line)
}

// wait waits for a duration. It flushes the sink first if an upload would stay in its buffer for longer than
// maxBuffered.
func (p *PacedSender) wait(ctx context.Context, left time.Duration) error {
	if left <= 0 {
		return ctx.Err()
	}
	if now := time.Now(); left >= maxBuffered || now.Sub(p.flushed) >= maxBuffered {
		p.flushed = now
		if err := p.to.Flush(ctx); err != nil {
			return err
		}
	}
	return retry.Sleep(ctx, left)
}

// Close flushes the sink, also if the run was interrupted.
func (p *PacedSender) Close(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	if ctx.Err() != nil {
		cancel()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
	}
	defer cancel()
	return p.to.Flush(ctx)
}
