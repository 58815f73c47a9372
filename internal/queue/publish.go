package queue

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// publishWindow is how many messages of one call await their confirmation at the same time: enough to keep the disk of
// the stream busy, and few enough for many callers to share it.
const publishWindow = 64

// Message is an upload to publish.
type Message struct {
	HardwareID string
	Team       *uuid.UUID // of the credential; nil for a trusted publisher
	Text       []byte     // the upload as it was sent
}

// Publish stores messages in the stream, in their order. It returns once the stream has confirmed all of them, or after
// the first failure or the end of ctx. The result has the stream sequence of each message, or 0 where it was not
// confirmed. Publish sets no message id, because an upload that is sent again is a new arrival (decision 39).
//
// Even if ctx ends, Publish waits for the confirmations of the messages that it has sent, for at most ackTimeout: until
// then the client refers to their text, so that the caller must count it.
func (q *Queue) Publish(ctx context.Context, messages []Message) (sequences []uint64, err error) {
	sequences = make([]uint64, len(messages))
	if q.lost.Load() {
		return sequences, ErrStreamLost
	}
	var window []jetstream.PubAckFuture
	confirmed := 0
	confirm := func() {
		sequence, failed := await(window[0])
		sequences[confirmed] = sequence
		window, confirmed = window[1:], confirmed+1
		if err == nil {
			err = failed
		}
	}
	for i := 0; i < len(messages) && err == nil; i++ {
		if ctx.Err() != nil {
			err = fmt.Errorf("publishing an upload: %w", ctx.Err())
			break
		}
		future, failed := q.js.PublishMsgAsync(messages[i].wire(), jetstream.WithStallWait(ackTimeout))
		if failed != nil {
			err = fmt.Errorf("publishing an upload: %w", failed)
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

// await returns the stream sequence of a published message once the stream has stored it. It fails after ackTimeout.
func await(future jetstream.PubAckFuture) (uint64, error) {
	select {
	case ack := <-future.Ok():
		return ack.Sequence, nil
	case err := <-future.Err():
		return 0, fmt.Errorf("storing an upload in the queue: %w", err)
	}
}
