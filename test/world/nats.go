package world

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
)

// natsOf is the connection of a process to the stream. The interfaces that it embeds are nil: the product does not call
// the other methods here.
type natsOf struct {
	jetstream.JetStream

	p *process
	s *stream
}

type connection struct {
	queue.Connection

	p *process
	s *stream
}

// newQueue returns the queue of a process.
func (p *process) newQueue(w *World) *queue.Queue {
	return queue.NewOn(connection{p: p, s: w.stream}, natsOf{p: p, s: w.stream},
		queue.Config{Replicas: 1, MaxBytes: int64(w.plan.maxBytes)}) //nolint:gosec // It is small.
}

func (c connection) IsConnected() bool    { return !c.p.isDead() }
func (connection) MaxPayload() int64      { return 1 << 20 }
func (connection) Stats() nats.Statistics { return nats.Statistics{} }
func (connection) Addresses() string      { return "simulated" }
func (connection) Failure() error         { return nil }
func (c connection) FlushWithContext(ctx context.Context) error {
	return c.p.call(ctx, "flush", func() error { return nil })
}

// RequestWithContext purges the stream.
func (c connection) RequestWithContext(ctx context.Context, _ string, data []byte) (*nats.Msg, error) {
	var request jetstream.StreamPurgeRequest
	if err := json.Unmarshal(data, &request); err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	var purged uint64
	err := c.p.call(ctx, "purge "+string(data), func() error {
		if c.s.gone {
			return nats.ErrNoResponders
		}
		purged = c.s.purge(strings.TrimRight(request.Subject, "*."), request.Sequence)
		c.s.w.record("purged %d", purged)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Data: fmt.Appendf(nil, `{"purged":%d}`, purged)}, nil
}

// future is the confirmation of a message.
type future struct {
	jetstream.PubAckFuture

	ok     chan *jetstream.PubAck
	failed chan error
}

func (f *future) Ok() <-chan *jetstream.PubAck { return f.ok }
func (f *future) Err() <-chan error            { return f.failed }

// publishTimeout limits the wait of the client for a confirmation.
const publishTimeout = 10 * time.Second

func (n natsOf) PublishMsgAsync(m *nats.Msg, _ ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	f := &future{ok: make(chan *jetstream.PubAck, 1), failed: make(chan error, 1)}
	if n.p.isDead() {
		return nil, nats.ErrConnectionClosed
	}
	n.p.publishing(f)
	w := n.s.w
	fail := func(d time.Duration, err error) {
		w.after(d, "publish fails", func() { n.p.reply(func() { f.failed <- err }) })
	}
	n.p.submit(fmt.Sprintf("publish %x", sha256.Sum256(m.Data))[:24], func() {
		if w.happens(w.plan.losePublish) {
			fail(publishTimeout, jetstream.ErrAsyncPublishTimeout)
			return
		}
		if w.happens(w.plan.refusePublish) {
			fail(w.latency(), errFull)
			return
		}
		sequence, err := n.s.store(m)
		switch {
		case err != nil:
			fail(w.latency(), err)
		case w.happens(w.plan.loseConfirmation):
			fail(publishTimeout, jetstream.ErrAsyncPublishTimeout)
		default:
			w.after(w.latency(), "confirm", func() {
				n.p.reply(func() { f.ok <- &jetstream.PubAck{Stream: queue.StreamName, Sequence: sequence} })
			})
		}
		w.record("stored %d: %v", sequence, err)
	})
	return f, nil
}

// request returns the error of a request that reads.
func (n natsOf) request() error {
	switch {
	case n.p.isDead():
		return nats.ErrConnectionClosed
	case n.s.gone:
		return jetstream.ErrStreamNotFound
	}
	return nil
}

type streamOf struct {
	jetstream.Stream

	info *jetstream.StreamInfo
	s    *stream
}

func (s streamOf) CachedInfo() *jetstream.StreamInfo { return s.info }

func (s streamOf) GetMsg(
	_ context.Context, sequence uint64, _ ...jetstream.GetMsgOpt,
) (*jetstream.RawStreamMsg, error) {
	m := s.s.from(max(sequence, 1))
	if m == nil {
		return nil, jetstream.ErrMsgNotFound
	}
	return &jetstream.RawStreamMsg{Sequence: m.sequence, Time: m.at, Data: m.Data, Subject: m.Subject}, nil
}

func (n natsOf) Stream(context.Context, string) (jetstream.Stream, error) {
	if err := n.request(); err != nil {
		return nil, err
	}
	return streamOf{info: n.s.info(), s: n.s}, nil
}

type consumerOf struct {
	jetstream.Consumer

	info *jetstream.ConsumerInfo
	n    natsOf
	c    *consumer
}

func (c consumerOf) CachedInfo() *jetstream.ConsumerInfo { return c.info }

// of returns where the consumer with a name is.
func (n natsOf) of(name string) **consumer {
	if name == queue.ConsumerName {
		return &n.s.consumer
	}
	return &n.s.lane
}

func (n natsOf) Consumer(_ context.Context, _, name string) (jetstream.Consumer, error) {
	if err := n.request(); err != nil {
		return nil, err
	}
	c := *n.of(name)
	if c == nil {
		return nil, jetstream.ErrConsumerNotFound
	}
	return consumerOf{info: c.info(n.s), n: n, c: c}, nil
}

func (n natsOf) CreateConsumer(
	ctx context.Context, _ string, config jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	err := n.p.call(ctx, "create consumer "+config.Durable, func() error {
		at := n.of(config.Durable)
		switch {
		case n.s.gone:
			return jetstream.ErrStreamNotFound
		case *at != nil:
			return jetstream.ErrConsumerExists
		}
		*at = newConsumer(config)
		for _, m := range n.s.log {
			if m.purged {
				n.s.settle(*at, m.sequence)
			}
		}
		if since := config.OptStartTime; since != nil {
			for (*at).next <= uint64(len(n.s.log)) && n.s.log[(*at).next-1].at.Before(*since) {
				(*at).next++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return n.Consumer(ctx, "", config.Durable)
}

// DeleteConsumer is a part of a replay.
func (n natsOf) DeleteConsumer(ctx context.Context, _, name string) error {
	return n.p.call(ctx, "delete consumer "+name, func() error {
		at := n.of(name)
		if *at == nil {
			return jetstream.ErrConsumerNotFound
		}
		n.s.closeAll(*at)
		*at = nil
		return nil
	})
}

// iterator has the messages that were delivered to a process and that it has not read yet.
type iterator struct {
	p       *process
	s       *stream
	c       *consumer
	buffer  []*delivered
	changed chan struct{}
	ended   error // nil while it is open
}

func (c consumerOf) Messages(...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	i := &iterator{p: c.n.p, s: c.n.s, c: c.c, changed: make(chan struct{}, 1)}
	i.p.submit("open "+c.c.config.Durable, func() {
		if i.c != i.s.consumer && i.c != i.s.lane { // It was deleted meanwhile.
			i.end(jetstream.ErrConsumerDeleted)
		}
		if i.open() {
			i.c.iterators = append(i.c.iterators, i)
			i.s.pump()
		}
	})
	return i, nil
}

func (i *iterator) open() bool { return i.ended == nil && !i.p.isDead() }

// end makes Next return an error once it has returned all that was delivered.
func (i *iterator) end(reason error) {
	i.ended = cmp.Or(i.ended, reason)
	i.wake()
}

func (i *iterator) wake() {
	i.p.reply(func() {
		select {
		case i.changed <- struct{}{}:
		default:
		}
	})
}

// laneWait limits the wait of the priority lane for a message.
const laneWait = 100 * time.Millisecond

// Next returns the next message. The context in the options cannot be read outside of the client. It is that of the
// process, and has a deadline in the priority lane.
func (i *iterator) Next(...jetstream.NextOpt) (jetstream.Msg, error) {
	var deadline <-chan time.Time
	if i.c.config.AckPolicy == jetstream.AckNonePolicy {
		timer := time.NewTimer(laneWait)
		defer timer.Stop()
		deadline = timer.C
	}
	for {
		switch {
		case i.p.isDead():
			return nil, nats.ErrConnectionClosed
		case len(i.buffer) > 0:
			next := i.buffer[0]
			i.buffer = i.buffer[1:]
			if len(i.buffer) == 0 {
				i.p.submit("pull", i.s.pump)
			}
			return next, nil
		case i.ended != nil:
			return nil, i.ended
		}
		stopping := i.p.ctx.Done()
		if i.p.ctx.Err() != nil {
			stopping = nil // It is the drain, which ends with ErrMsgIteratorClosed.
		}
		select {
		case <-i.changed:
		case <-deadline:
			return nil, context.DeadlineExceeded
		case <-stopping:
			return nil, i.p.ctx.Err()
		case <-i.p.killed:
		}
	}
}

// Drain ends the deliveries. The messages that were delivered remain.
func (i *iterator) Drain() { i.ended = cmp.Or(i.ended, error(jetstream.ErrMsgIteratorClosed)) }

// Stop drops the messages that were delivered.
func (i *iterator) Stop() {
	i.buffer = nil
	i.Drain()
}

// delivered is one delivery of a message.
type delivered struct {
	*message

	consumer   *consumer
	to         *iterator
	deliveries uint64
	pending    uint64
}

func (d *delivered) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{
		Sequence: jetstream.SequencePair{Stream: d.sequence}, NumDelivered: d.deliveries, NumPending: d.pending,
		Timestamp: d.at, Stream: queue.StreamName,
	}, nil
}

func (d *delivered) Data() []byte         { return d.message.Data }
func (d *delivered) Headers() nats.Header { return d.Header }
func (d *delivered) Subject() string      { return d.message.Subject }
func (d *delivered) Reply() string        { return "" }

// send sends something about the delivery to the stream, which may be lost or arrive twice.
func (d *delivered) send(what string, do func(s *stream, c *consumer)) error {
	p, s := d.to.p, d.to.s
	if p.isDead() {
		return nats.ErrConnectionClosed
	}
	label := fmt.Sprintf("%s %d", what, d.sequence)
	arrive := func() {
		// The server ignores what is about a former consumer, and about a message that it does not wait for.
		if c := d.consumer; c == s.consumer && !s.gone && c.isHeld(d.sequence) {
			do(s, c)
		}
	}
	p.submit(label, func() {
		if s.w.happens(s.w.plan.loseAck) {
			s.w.record("lost")
			return
		}
		arrive()
		if s.w.happens(s.w.plan.repeatAck) {
			s.w.after(s.w.latency(), "again: "+label, arrive)
		}
	})
	return nil
}

func (d *delivered) Ack() error {
	return d.send("ack", func(s *stream, c *consumer) { s.settle(c, d.sequence) })
}

func (d *delivered) Nak() error { return d.NakWithDelay(0) }

func (d *delivered) NakWithDelay(delay time.Duration) error {
	return d.send("nak", func(s *stream, c *consumer) { s.wait(c, d.sequence, delay+time.Millisecond) })
}

func (d *delivered) InProgress() error {
	return d.send("extend", func(s *stream, c *consumer) {
		if c.held[d.sequence] != nil {
			s.wait(c, d.sequence, s.w.plan.ackWait)
		}
	})
}

func (d *delivered) DoubleAck(context.Context) error { return d.Ack() }
func (d *delivered) Term() error                     { return d.Ack() } // The server delivers it no more.
func (d *delivered) TermWithReason(string) error     { return d.Ack() }
