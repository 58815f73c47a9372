package queue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"roomsensor/internal/tracing"
)

// publishWindow limits the unconfirmed messages of one team, or of one call without a team: enough to keep the disk of
// the stream busy, and few, because the stream stores messages in their order, so that those of other teams wait for
// all of them.
const publishWindow = 64

// Message is an upload, or a message of a source, to publish.
type Message struct {
	HardwareID string
	Team       *uuid.UUID // of the credential; nil for a trusted publisher
	Text       []byte     // as it was sent
	Source     *uuid.UUID // whose mapping reads the text (A10.7); nil for an upload
	Precision  string     // of the times in its line protocol, as the sender gave it
}

// Publish stores messages of one team in the stream, in their order. It returns once the stream has confirmed all of
// them, or after the first failure or the end of ctx. The result has the stream sequence of each message, or 0 where it
// was not confirmed. It is ErrBacklog if too many messages of the team wait for a worker. Publish sets no message id,
// because an upload that is sent again is a new arrival (decision 39).
//
// Messages of several calls may share an atomic batch, see batcher. Even if ctx ends, Publish waits for the
// confirmations of the messages that it has given to the batcher, for at most ackTimeout after they were sent: until
// then the client refers to their text, so that the caller must count it.
func (q *Queue) Publish(ctx context.Context, messages []Message) (sequences []uint64, err error) {
	sequences = make([]uint64, len(messages))
	switch {
	case q.lost.Load():
		return sequences, ErrStreamLost
	case len(messages) == 0:
		return sequences, nil
	}
	ctx, span := tracing.Child(ctx, "publish uploads", trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(semconv.MessagingSystemKey.String("nats"), semconv.MessagingBatchMessageCount(len(messages))))
	defer span.End()
	of := newBacklog() // Without a team, no other call counts.
	if team := messages[0].Team; team != nil {
		admitted, _ := amountOf(messages, nil)
		if of, err = q.backlogs.admit(*team, admitted, q.backlogLimit()); err != nil {
			return sequences, err
		}
		defer func() {
			stored, last := amountOf(messages, sequences)
			q.backlogs.settle(*team, of, admitted, stored, last)
		}()
	}
	p := publishing{queue: q, window: of.window, sequences: sequences, trace: tracing.Inject(ctx)}
	for rest := messages; len(rest) > 0 && err == nil; {
		rest, err = p.send(ctx, rest)
	}
	for len(p.sent) > 0 {
		err = cmp.Or(err, p.confirm())
	}
	return sequences, q.withCause(err)
}

// publishing is one call of Publish.
type publishing struct {
	queue     *Queue
	window    *semaphore.Weighted
	sent      []*publication // not confirmed yet
	sequences []uint64
	confirmed int
	trace     string // header that makes the span of the call the parent of those of its uploads; empty without one
}

// send sends the first messages, as many as there is room for in the window, and returns the others. Without any room,
// it waits for it. The batcher gets all of them at once: one by one, it would send the first ones outside of a batch.
func (p *publishing) send(ctx context.Context, messages []Message) (rest []Message, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("publishing an upload: %w", err)
	}
	n := 0
	for n < len(messages) && p.window.TryAcquire(1) {
		n++
	}
	if n == 0 && len(p.sent) > 0 {
		return messages, p.confirm()
	}
	if n == 0 {
		if err := p.window.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("waiting for other uploads of the team: %w", err)
		}
		n = 1
	}
	wire := make([]*nats.Msg, n)
	for i := range wire {
		wire[i] = messages[i].wire(p.trace)
	}
	p.sent = append(p.sent, p.queue.batcher.publish(wire...)...)
	return messages[n:], nil
}

// confirm waits for the confirmation of the first message that has none.
func (p *publishing) confirm() error {
	sequence, err := p.queue.batcher.await(p.sent[0])
	p.queue.recordConfirmation(err)
	p.window.Release(1)
	p.sequences[p.confirmed] = sequence
	p.queue.observe(sequence)
	p.sent, p.confirmed = p.sent[1:], p.confirmed+1
	return err
}

func (m *Message) wire(parent string) *nats.Msg {
	msg := &nats.Msg{Subject: subjectOf(m.Team, m.HardwareID), Data: m.Text}
	if parent != "" {
		msg.Header = nats.Header{tracing.Header: []string{parent}}
	}
	if m.Source != nil {
		if msg.Header == nil {
			msg.Header = nats.Header{}
		}
		msg.Header[sourceHeader] = []string{m.Source.String()}
		if m.Precision != "" {
			msg.Header[precisionHeader] = []string{m.Precision}
		}
	}
	return msg
}

// The headers of a message of a source.
const (
	sourceHeader    = "Roomsensor-Source"
	precisionHeader = "Roomsensor-Precision"
)

// subjectOf returns the subject of a message.
func subjectOf(team *uuid.UUID, hardwareID string) string {
	if team == nil {
		return subjectPrefix + NoTeam + "." + hardwareID
	}
	return subjectPrefix + team.String() + "." + noUnit
}
