package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// aheadName is a consumer that is there only while there is a backlog.
	aheadName = "ingest-ahead"
	// aheadIdle is when it goes, after nobody asked it for anything.
	aheadIdle = 30 * time.Second
)

// Ahead opens a second way into the stream, past a backlog: from what arrived
// at an instant on, each message goes to one of those who read here; who comes
// second reads on where the first one is. Nothing is acknowledged here and
// nothing settled: every message comes from Messages too, whatever became of it.
func (q *Queue) Ahead(ctx context.Context, since time.Time) (jetstream.MessagesContext, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := q.js.CreateConsumer(ctx, StreamName, jetstream.ConsumerConfig{
		Durable:           aheadName,
		DeliverPolicy:     jetstream.DeliverByStartTimePolicy,
		OptStartTime:      &since,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: aheadIdle,
		MemoryStorage:     true, // There is nothing to keep of it.
	})
	if errors.Is(err, jetstream.ErrConsumerExists) { // Another worker was first.
		consumer, err = q.js.Consumer(ctx, StreamName, aheadName)
	}
	if err != nil {
		return nil, wrapped("making the consumer past a backlog", err)
	}
	return q.read(consumer)
}
