package send

import (
	"bytes"
	"context"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
)

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

func (s *queueSink) Send(ctx context.Context, hardwareID string, line []byte) error {
	s.buffered = append(s.buffered, queue.Message{HardwareID: hardwareID, Text: bytes.Clone(line)})
	s.bytes += len(line)
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
