package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/retry"
)

// State is the content of the queue, for metrics and autoscalers.
type State struct {
	Waiting        uint64    // messages that no worker has received
	Unacknowledged int       // messages that a worker has received and not settled
	Oldest         time.Time // when the stream stored the oldest message of both kinds; zero when there is none
	Kept           time.Time // when the stream stored the oldest message that it keeps; zero when it is empty
	Bytes          uint64    // size of the stream
	MaxBytes       int64     // limit of Bytes; not positive when unbounded
}

// State reads the state from the server.
func (q *Queue) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, consumer, err := q.inspect(ctx)
	if err != nil {
		return State{}, err
	}
	oldest, err := oldestUnacknowledged(ctx, stream, consumer.CachedInfo())
	if err != nil {
		return State{}, err
	}
	info, kept := stream.CachedInfo(), time.Time{}
	if info.State.Msgs > 0 {
		kept = info.State.FirstTime
	}
	return State{
		Waiting:        consumer.CachedInfo().NumPending,
		Unacknowledged: consumer.CachedInfo().NumAckPending,
		Oldest:         oldest,
		Kept:           kept,
		Bytes:          info.State.Bytes,
		MaxBytes:       info.Config.MaxBytes,
	}, nil
}

// inspect reads the consumer before the stream, so that the acknowledged floor is not newer than the stream's state.
func (q *Queue) inspect(ctx context.Context) (jetstream.Stream, jetstream.Consumer, error) {
	consumer, err := q.consumer(ctx)
	if err != nil {
		return nil, nil, err
	}
	stream, err := q.stream(ctx)
	return stream, consumer, err
}

// oldestUnacknowledged returns when the stream stored the first message above the acknowledged floor, below which
// everything is settled. It returns the zero time when everything is settled.
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

// messageFrom returns the first message at or after a sequence, or nil when there is none.
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

const (
	// replayAttempts limits the attempts of Replay to create the consumer again: a worker that misses it may create it
	// first, with another start, and the server may still be removing the files of the deleted one.
	replayAttempts = 5
	// replayPause is the time for the server to remove them.
	replayPause = 200 * time.Millisecond
)

// Replay delivers the messages since an instant to the workers again, or all messages of the stream when since is nil.
// It creates the consumer again under its name; running workers continue by themselves. Messages that are not settled
// are delivered as well, however old they are.
func (q *Queue) Replay(ctx context.Context, since *time.Time) error {
	config, err := q.replayConfig(ctx, since)
	if err != nil {
		return err
	}
	for range replayAttempts {
		err = q.js.DeleteConsumer(ctx, StreamName, ConsumerName)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("deleting the consumer: %w", err)
		}
		_, err = q.js.CreateConsumer(ctx, StreamName, config)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrConsumerCreate):
			_ = retry.Sleep(ctx, replayPause) // The next request fails if ctx has ended.
		case !errors.Is(err, jetstream.ErrConsumerExists):
			return fmt.Errorf("creating the consumer again: %w", err)
		}
	}
	return fmt.Errorf("creating the consumer again: %w", err)
}

// replayConfig returns the configuration of the existing consumer with the start of the replay.
func (q *Queue) replayConfig(ctx context.Context, since *time.Time) (jetstream.ConsumerConfig, error) {
	stream, consumer, err := q.inspect(ctx)
	if err != nil {
		return jetstream.ConsumerConfig{}, err
	}
	config := consumer.CachedInfo().Config
	config.DeliverPolicy, config.OptStartTime, config.OptStartSeq = jetstream.DeliverAllPolicy, nil, 0
	if since == nil {
		return config, nil
	}
	start := since.UTC()
	oldest, err := oldestUnacknowledged(ctx, stream, consumer.CachedInfo())
	if err != nil {
		return config, err
	}
	if !oldest.IsZero() && oldest.Before(start) {
		start = oldest
	}
	newest := stream.CachedInfo().State.LastTime
	if newest.IsZero() {
		return config, nil
	}
	if newest.Before(start) {
		start = newest // A start in the future would skip messages that arrive until then.
	}
	config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &start
	return config, nil
}
