package queue

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Message is an upload on its way into the stream.
type Message struct {
	HardwareID string
	Team       *uuid.UUID // of the credential it came with; nil on trusted ground
	Text       []byte     // the upload as it was sent
}

// Publish puts messages into the stream in their order. It returns once the
// stream has stored them all, or when the first could not be; the sequences
// are those of the messages, 0 for one that is not known to be stored. No
// message id is made from the content: an upload sent again is a new arrival
// (decision 39).
func (q *Queue) Publish(ctx context.Context, messages []Message) (sequences []uint64, err error) {
	futures := make([]jetstream.PubAckFuture, 0, len(messages))
	for i := range messages {
		future, sent := q.js.PublishMsgAsync(messages[i].wire(), jetstream.WithStallWait(ackTimeout))
		if sent != nil {
			err = fmt.Errorf("sending an upload to the queue: %w", sent)
			break
		}
		futures = append(futures, future)
	}
	sequences = make([]uint64, len(messages))
	for i, future := range futures {
		sequence, failed := await(ctx, future)
		sequences[i] = sequence
		if err == nil {
			err = failed
		}
	}
	return sequences, err
}

func (m *Message) wire() *nats.Msg {
	msg := &nats.Msg{Subject: subjectPrefix + m.HardwareID, Data: m.Text}
	if m.Team != nil {
		msg.Header = nats.Header{TeamHeader: []string{m.Team.String()}}
	}
	return msg
}

func await(ctx context.Context, future jetstream.PubAckFuture) (uint64, error) {
	select {
	case ack := <-future.Ok():
		return ack.Sequence, nil
	case err := <-future.Err():
		return 0, fmt.Errorf("storing an upload in the queue: %w", err)
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for the queue: %w", ctx.Err())
	}
}
