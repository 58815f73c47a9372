package queue

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// publishWindow is how many messages of one team, or of one call without a team, await their confirmation at the same
// time: enough to keep the disk of the stream busy, and few, because the stream stores messages in their order, so that
// those of other teams wait for all of them.
const publishWindow = 64

// Message is an upload to publish.
type Message struct {
	HardwareID string
	Team       *uuid.UUID // of the credential; nil for a trusted publisher
	Text       []byte     // the upload as it was sent
}

// Publish stores messages of one team in the stream, in their order. It returns once the stream has confirmed all of
// them, or after the first failure or the end of ctx. The result has the stream sequence of each message, or 0 where it
// was not confirmed. Publish sets no message id, because an upload that is sent again is a new arrival (decision 39).
//
// Even if ctx ends, Publish waits for the confirmations of the messages that it has sent, for at most ackTimeout: until
// then the client refers to their text, so that the caller must count it.
func (q *Queue) Publish(ctx context.Context, messages []Message) (sequences []uint64, err error) {
	sequences = make([]uint64, len(messages))
	switch {
	case q.lost.Load():
		return sequences, ErrStreamLost
	case len(messages) == 0:
		return sequences, nil
	}
	window, leave := q.windows.enter(messages[0].Team)
	defer leave()
	p := publishing{js: q.js, window: window, sequences: sequences}
	for i := 0; i < len(messages) && err == nil; i++ {
		err = p.send(ctx, &messages[i])
	}
	for len(p.sent) > 0 {
		err = cmp.Or(err, p.confirm())
	}
	return sequences, err
}

// publishing is one call of Publish.
type publishing struct {
	js        jetstream.JetStream
	window    *semaphore.Weighted
	sent      []jetstream.PubAckFuture // not confirmed yet
	sequences []uint64
	confirmed int
}

// send sends a message once there is room for it in the window.
func (p *publishing) send(ctx context.Context, m *Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("publishing an upload: %w", err)
	}
	for !p.window.TryAcquire(1) {
		if len(p.sent) > 0 {
			if err := p.confirm(); err != nil {
				return err
			}
			continue
		}
		if err := p.window.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("waiting for other uploads of the team: %w", err)
		}
		break
	}
	future, err := p.js.PublishMsgAsync(m.wire(), jetstream.WithStallWait(ackTimeout))
	if err != nil {
		p.window.Release(1)
		return fmt.Errorf("publishing an upload: %w", err)
	}
	p.sent = append(p.sent, future)
	return nil
}

// confirm waits for the confirmation of the first message that has none.
func (p *publishing) confirm() error {
	sequence, err := await(p.sent[0])
	p.window.Release(1)
	p.sequences[p.confirmed] = sequence
	p.sent, p.confirmed = p.sent[1:], p.confirmed+1
	return err
}

// windows limits the messages that each team has on their way to the stream.
type windows struct {
	mu    sync.Mutex
	teams map[uuid.UUID]*window
}

// window is shared by the calls of Publish of a team.
type window struct {
	limit *semaphore.Weighted
	calls int
}

// enter returns the window of a team, or one of its own without a team. The caller must call leave.
func (w *windows) enter(team *uuid.UUID) (limit *semaphore.Weighted, leave func()) {
	if team == nil {
		return semaphore.NewWeighted(publishWindow), func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.teams == nil {
		w.teams = map[uuid.UUID]*window{}
	}
	shared := w.teams[*team]
	if shared == nil {
		shared = &window{limit: semaphore.NewWeighted(publishWindow)}
		w.teams[*team] = shared
	}
	shared.calls++
	return shared.limit, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if shared.calls--; shared.calls == 0 {
			delete(w.teams, *team)
		}
	}
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
