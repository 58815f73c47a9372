package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrSettled means that the workers have settled a message, or that the stream does not have it.
var ErrSettled = errors.New("the stream has no unsettled message with this sequence")

// Unsettled returns a message that the workers have not settled yet. It is not a delivery: do not settle it. The error
// is ErrSettled if there is no such message; a message above the first unsettled one may be settled all the same.
func (q *Queue) Unsettled(ctx context.Context, sequence uint64) (*Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, consumer, err := q.inspect(ctx)
	if err != nil {
		return nil, err
	}
	msg, err := stream.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && sequence <= consumer.CachedInfo().AckFloor.Stream:
		return nil, ErrSettled
	case err != nil:
		return nil, fmt.Errorf("reading a message of the stream: %w", err)
	}
	//nolint:contextcheck // The span of a message belongs to its sender.
	return uploadOf(msg.Subject, msg.Header, msg.Data, msg.Time, msg.Sequence), nil
}

// Remove deletes a message from the stream. The server no longer delivers it, and the acknowledged floor passes it.
func (q *Queue) Remove(ctx context.Context, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := q.stream(ctx)
	if err != nil {
		return err
	}
	if err := stream.DeleteMsg(ctx, sequence); err != nil {
		return fmt.Errorf("deleting a message of the stream: %w", err)
	}
	return nil
}
