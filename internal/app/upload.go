package app

import (
	"context"
	"errors"
	"io"

	"roomsensor/internal/config"
	"roomsensor/internal/ingest"
	"roomsensor/internal/queue"
)

// Receipt says what became of one line of uploads.
type Receipt = ingest.Receipt

// Upload puts JSON Lines of uploads into the stream and gives a receipt for
// each line, in their order: that it is stored, or why it was not taken. A line
// that cannot be taken does not stop the others, and makes the command fail in
// the end. It is for trusted ground, as no team is named.
func Upload(
	ctx context.Context, cfg config.Queue, stream config.Stream, in io.Reader, receipt func(Receipt) error,
) error {
	return withQueue(ctx, cfg, stream, func(ctx context.Context, q *queue.Queue) error {
		// An interrupt must end a read from a terminal too.
		done := make(chan error, 1)
		go func() { done <- ingest.UploadLines(ctx, q, in, receipt) }()
		select {
		case err := <-done:
			return explainUpload(err)
		case <-ctx.Done():
			return errInterrupted
		}
	})
}

func explainUpload(err error) error {
	switch {
	case errors.Is(err, ingest.ErrLinesRefused):
		return refusef("Some lines were not taken; their receipts say why. Correct and send them again.")
	case errors.Is(err, ingest.ErrQueueRefused):
		return refusef("The queue took no more. A line whose receipt has a stream_sequence is stored; "+
			"send the others again: %v", err)
	}
	return err
}
