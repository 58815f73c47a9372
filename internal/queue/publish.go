package queue

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// publishWindow is how many messages of one call are under way: enough to keep
// the disk of the stream busy, few enough that many callers share it.
const publishWindow = 512

// Message is an upload on its way into the stream.
type Message struct {
	HardwareID string
	Team       *uuid.UUID // of the credential it came with; nil on trusted ground
	Text       []byte     // the upload as it was sent
}

// Publish puts messages into the stream in their order. It returns once the
// stream has stored them all, or after the first that it did not; the sequences
// are those of the messages, 0 for one that is not known to be stored. No
// message id is made from the content: an upload sent again is a new arrival
// (decision 39).
func (q *Queue) Publish(ctx context.Context, messages []Message) (sequences []uint64, err error) {
	sequences = make([]uint64, len(messages))
	var window []jetstream.PubAckFuture
	confirmed := 0
	confirm := func() {
		sequence, failed := await(ctx, window[0])
		sequences[confirmed] = sequence
		window, confirmed = window[1:], confirmed+1
		if err == nil {
			err = failed
		}
	}
	for i := 0; i < len(messages) && err == nil; i++ {
		future, failed := q.js.PublishMsgAsync(messages[i].wire(), jetstream.WithStallWait(ackTimeout))
		if failed != nil {
			err = fmt.Errorf("sending an upload to the queue: %w", failed)
			break
		}
		if window = append(window, future); len(window) >= publishWindow {
			confirm()
		}
	}
	for len(window) > 0 {
		confirm()
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
