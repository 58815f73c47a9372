package app

import (
	"bytes"
	"context"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/queue"
)

// queueSink puts uploads into the stream, as trusted ground: without a team.
type queueSink struct {
	queue *queue.Queue
	held  []queue.Message
	bytes int
}

// OpenQueueSink connects to the stream, which is made where it is missing.
// shut closes the connection.
func OpenQueueSink(
	ctx context.Context, cfg config.Queue, stream config.Stream,
) (sink UploadSink, shut func(), err error) {
	q, conn, err := connectQueue(cfg, stream, "roomsensor simulate", zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	if err := declare(ctx, q); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return &queueSink{queue: q}, conn.Close, nil
}

// What is held back to be sent in one go: enough to keep the stream busy,
// little to send again.
const (
	batchUploads = 512
	batchBytes   = 8 << 20
)

func (s *queueSink) Send(ctx context.Context, hardwareID string, line []byte) error {
	s.held = append(s.held, queue.Message{HardwareID: hardwareID, Text: bytes.Clone(line)})
	s.bytes += len(line)
	if len(s.held) < batchUploads && s.bytes < batchBytes {
		return nil
	}
	return s.Flush(ctx)
}

func (s *queueSink) Flush(ctx context.Context) error {
	if len(s.held) == 0 {
		return nil
	}
	if _, err := s.queue.Publish(ctx, s.held); err != nil {
		return refusef("The queue did not store all uploads. Check that it runs and is not full, "+
			"and send them again: %v", err)
	}
	s.held, s.bytes = s.held[:0], 0
	return nil
}
