package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State is what the queue holds, for metrics and for scaling.
type State struct {
	Waiting        uint64 // messages that no worker has been given
	Unacknowledged int    // messages that a worker was given and has not settled
	// Oldest is when the oldest of both was stored; zero when there is none.
	Oldest   time.Time
	Bytes    uint64
	MaxBytes int64 // not positive where there is no limit
}

// State asks for the state.
func (q *Queue) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, consumer, err := q.look(ctx)
	if err != nil {
		return State{}, err
	}
	oldest, err := oldestUnacknowledged(ctx, stream, consumer.CachedInfo())
	if err != nil {
		return State{}, err
	}
	info := stream.CachedInfo()
	return State{
		Waiting:        consumer.CachedInfo().NumPending,
		Unacknowledged: consumer.CachedInfo().NumAckPending,
		Oldest:         oldest,
		Bytes:          info.State.Bytes,
		MaxBytes:       info.Config.MaxBytes,
	}, nil
}

// look reads the consumer first, so that its floor is of no later moment than
// what is known of the stream.
func (q *Queue) look(ctx context.Context) (jetstream.Stream, jetstream.Consumer, error) {
	consumer, err := q.consumer(ctx)
	if err != nil {
		return nil, nil, err
	}
	stream, err := q.stream(ctx)
	return stream, consumer, err
}

// oldestUnacknowledged is when the first message above the acknowledged floor
// was stored; everything below it is settled.
func oldestUnacknowledged(
	ctx context.Context, stream jetstream.Stream, info *jetstream.ConsumerInfo,
) (time.Time, error) {
	if info.NumPending == 0 && info.NumAckPending == 0 {
		return time.Time{}, nil
	}
	msg, err := messageFrom(ctx, stream, info.AckFloor.Stream+1)
	if err != nil || msg == nil {
		return time.Time{}, err
	}
	return msg.Time, nil
}

// messageFrom is the first message at or after a sequence; nil when there is none.
func messageFrom(ctx context.Context, stream jetstream.Stream, sequence uint64) (*jetstream.RawStreamMsg, error) {
	msg, err := stream.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(subjects))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // Documented.
	}
	if err != nil {
		return nil, fmt.Errorf("reading a message of the stream: %w", err)
	}
	return msg, nil
}
