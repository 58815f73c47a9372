package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// replayAttempts is how often the consumer is made anew before giving up: a
// worker that misses it may make it first, from another start, and the server
// may still be removing the files of the old one.
const replayAttempts = 5

// replayPause is what the server gets to remove them.
const replayPause = 200 * time.Millisecond

// Replay gives the stream to the workers again, from an instant or as a whole,
// by making the consumer anew under its name; running workers carry on by
// themselves. What no worker has settled is given again too, however old.
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
			pause(ctx, replayPause)
		case !errors.Is(err, jetstream.ErrConsumerExists):
			return fmt.Errorf("making the consumer anew: %w", err)
		}
	}
	return fmt.Errorf("making the consumer anew: %w", err)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// replayConfig keeps what an operator widened and starts where the replay must.
func (q *Queue) replayConfig(ctx context.Context, since *time.Time) (jetstream.ConsumerConfig, error) {
	stream, consumer, err := q.look(ctx)
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
		start = newest // What arrives from now on must not be skipped, whatever the clocks say.
	}
	config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &start
	return config, nil
}
