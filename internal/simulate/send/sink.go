package send

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/simulate"
)

// Sink is the destination of uploads.
type Sink interface {
	// Send passes on one upload, which it does not retain. The sink may buffer it to send it with others.
	Send(ctx context.Context, u *simulate.Upload) error
	// Flush returns once all uploads passed to Send are stored.
	Flush(ctx context.Context) error
}

// lineSink prints uploads as JSON Lines.
type lineSink struct {
	out  *bufio.Writer
	line []byte
}

// NewLineSink returns a sink that prints uploads as JSON Lines.
func NewLineSink(to io.Writer) Sink { return &lineSink{out: bufio.NewWriterSize(to, 1<<16)} }

func (s *lineSink) Send(_ context.Context, u *simulate.Upload) error {
	s.line = append(u.AppendJSON(s.line[:0]), '\n')
	_, err := s.out.Write(s.line)
	return outputError(err)
}

func (s *lineSink) Flush(context.Context) error { return outputError(s.out.Flush()) }

func outputError(err error) error {
	if err != nil {
		return fmt.Errorf("printing uploads: %w", err)
	}
	return nil
}

// The most that one publish sends: enough to keep the stream busy, and little to send again.
const (
	batchUploads = 512
	batchBytes   = 8 << 20
)

// queueSink publishes uploads to the stream as a trusted publisher: without a team.
type queueSink struct {
	queue    *queue.Queue
	buffered []queue.Message
	bytes    int
}

// OpenQueueSink connects to the stream, which it creates if it does not exist. The caller must call shut, which closes
// the connection.
func OpenQueueSink(
	ctx context.Context, cfg config.Queue, stream config.Stream,
) (sink Sink, shut func(), err error) {
	q, conn, err := process.ConnectQueue(cfg, stream, "roomsensor-dev simulate", zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	if err := process.DeclareStream(ctx, q); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return &queueSink{queue: q}, conn.Close, nil
}

func (s *queueSink) Send(ctx context.Context, u *simulate.Upload) error {
	text := u.AppendJSON(nil)
	s.buffered = append(s.buffered, queue.Message{HardwareID: u.HardwareID, Text: text})
	s.bytes += len(text)
	if len(s.buffered) < batchUploads && s.bytes < batchBytes {
		return nil
	}
	return s.Flush(ctx)
}

func (s *queueSink) Flush(ctx context.Context) error {
	if len(s.buffered) == 0 {
		return nil
	}
	if _, err := s.queue.Publish(ctx, s.buffered); err != nil {
		return process.Refusef("The queue did not store all uploads. Check that it runs and is not full, "+
			"and run the command again: %v", err)
	}
	s.buffered, s.bytes = s.buffered[:0], 0
	return nil
}
