package admin

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/worker"
)

// withQueue calls do with a connection to the stream, which it creates if it does not exist.
func withQueue(
	ctx context.Context, cfg config.Queue, stream config.Stream, do func(*queue.Queue) error,
) error {
	q, conn, err := process.ConnectQueue(cfg, stream, "roomsensor", zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := process.DeclareStream(ctx, q); err != nil {
		return err
	}
	return do(q)
}

// Receipt is the result of one line of uploads.
type Receipt = receiver.Receipt

// Upload publishes JSON Lines of uploads to the stream and passes a receipt for each line to receipt, in the order of
// the lines: stored, or why it was refused. A refused line does not stop the others, but makes the command fail at the
// end. The caller is a trusted publisher: no team restricts which units it may upload for.
func Upload(
	ctx context.Context, cfg config.Queue, stream config.Stream, in io.Reader, receipt func(Receipt) error,
) error {
	return withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		done := make(chan error, 1)
		go func() { done <- receiver.UploadLines(ctx, q, in, receipt) }()
		select {
		case err := <-done:
			return explainUpload(err)
		case <-ctx.Done(): // A read from a terminal does not end with ctx.
			return process.ErrInterrupted
		}
	})
}

func explainUpload(err error) error {
	switch {
	case errors.Is(err, receiver.ErrLinesRefused):
		return process.Refusef("Some lines were refused; their receipts say why. Correct these lines and upload them again.")
	case errors.Is(err, receiver.ErrQueueRefused):
		return process.Refusef("The queue is full or unavailable. Lines whose receipt has a stream_sequence are stored; "+
			"upload the others again: %v", err)
	}
	return err
}

// StreamReplay is the state of the consumer after a replay of the stream.
type StreamReplay struct {
	Stream   string  `json:"stream"`
	Consumer string  `json:"consumer"`
	Since    *string `json:"since"`
	Waiting  uint64  `json:"waiting"` // messages not yet delivered to a worker
}

// ReplayStream makes the workers process the stream again: messages that arrived at since or later, or all if it is
// nil.
func ReplayStream(
	ctx context.Context, cfg config.Queue, stream config.Stream, since *time.Time,
) (replay StreamReplay, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		if err := q.Replay(ctx, since); err != nil {
			return err
		}
		state, err := q.State(ctx)
		replay = StreamReplay{queue.StreamName, queue.ConsumerName, formatTime(since), state.Waiting}
		return err
	})
	return replay, err
}

// ConfirmedStream is the stream that the database records.
type ConfirmedStream struct {
	Stream    string `json:"stream"`
	CreatedAt string `json:"created_at"`
}

// ConfirmStream records the stream in place of the one before, which was lost. It creates a missing one.
func (o *Operator) ConfirmStream(
	ctx context.Context, cfg config.Queue, stream config.Stream,
) (confirmed ConfirmedStream, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		if err := q.Check(ctx); err != nil {
			return process.Interrupted(ctx, err)
		}
		confirmed = ConfirmedStream{queue.StreamName, roomsensor.FormatTime(q.Created())}
		return o.explain(ctx, o.store.ConfirmStream(ctx, queue.StreamName, q.Created()))
	})
	return confirmed, err
}

// SkipUpload makes a message of the stream a reject and removes it from the stream. Workers that run do not receive it
// again.
func (o *Operator) SkipUpload(
	ctx context.Context, cfg config.Queue, stream config.Stream, sequence uint64,
) (skipped Reject, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		message, err := q.Unsettled(ctx, sequence)
		switch {
		case errors.Is(err, queue.ErrSettled):
			return process.Refusef("The stream has no message %d, or the workers have settled it: nothing holds them up there. "+
				"Their log names the stream_sequence of uploads that the database refuses.", sequence)
		case err != nil:
			return process.Interrupted(ctx, err)
		}
		reject, err := o.store.SkipUpload(ctx, worker.Skipped(message))
		if err != nil {
			return o.explain(ctx, err)
		}
		skipped = viewReject(&reject)
		return q.Remove(ctx, sequence)
	})
	return skipped, err
}
