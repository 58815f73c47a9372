package world

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
)

// stream is a model of the stream of uploads and of its consumers. Only the driver changes it. Processes read it
// between two steps.
type stream struct {
	w       *World
	created time.Time
	jump    time.Duration // of its clock
	gone    bool
	log     []*message // all that it ever stored
	first   uint64     // sequence of the first one that it keeps
	last    time.Time  // time of the last one
	bytes   uint64
	consumer,
	lane *consumer // nil if it does not exist
}

// message is a message of the stream. Its sequence is one more than its index in the log.
type message struct {
	*nats.Msg

	sequence uint64
	at       time.Time
	purged   bool
}

// messageBytes is what each message takes: a request of several uploads must fit into a tenth of the stream.
const messageBytes = 1 << 10

// consumer delivers messages to its iterators. That of the priority lane wants no acknowledgements.
type consumer struct {
	config    jetstream.ConsumerConfig
	created   time.Time
	next      uint64            // sequence
	held      map[uint64]*step  // delivered and not settled: the end of the wait for an acknowledgement
	again     []uint64          // to be delivered again, in this order
	acked     map[uint64]bool   // above the floor
	floor     uint64            // everything up to it is settled
	delivered map[uint64]uint64 // how often
	iterators []*iterator
	pumping   bool
}

func newStream(w *World) *stream {
	return &stream{w: w, created: time.Now().Truncate(time.Microsecond), first: 1}
}

func newConsumer(config jetstream.ConsumerConfig) *consumer {
	return &consumer{
		config: config, created: time.Now(), next: 1,
		held: map[uint64]*step{}, acked: map[uint64]bool{}, delivered: map[uint64]uint64{},
	}
}

// errFull is what a stream answers whose MaxBytes are reached.
var errFull = &jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum bytes exceeded"}

// store stores a message, or returns the server's error.
func (s *stream) store(m *nats.Msg) (uint64, error) {
	stored := &message{Msg: m, sequence: uint64(len(s.log)) + 1}
	switch {
	case s.gone:
		return 0, nats.ErrNoResponders
	case s.bytes+messageBytes > s.w.plan.maxBytes:
		return 0, errFull
	}
	stored.at = time.Now().Add(s.jump)
	if s.collides(stored.at) { // The ledger could not tell which one is the newest.
		stored.at = s.last.Add(time.Microsecond)
	}
	s.last = stored.at
	s.log = append(s.log, stored)
	s.bytes += messageBytes
	s.pump()
	return stored.sequence, nil
}

func (s *stream) collides(at time.Time) bool {
	return slices.ContainsFunc(s.log, func(m *message) bool {
		return m.at.Truncate(time.Microsecond).Equal(at.Truncate(time.Microsecond))
	})
}

// setGone makes the stream disappear, or come back with all that it had.
func (s *stream) setGone(gone bool) {
	s.gone = gone
	if gone {
		s.closeAll(s.consumer)
		s.closeAll(s.lane)
	}
}

func (s *stream) closeAll(c *consumer) {
	if c == nil {
		return
	}
	for _, i := range c.iterators {
		i.end(jetstream.ErrConsumerDeleted)
	}
	c.iterators = nil
}

// info is the state of the stream.
func (s *stream) info() *jetstream.StreamInfo {
	info := &jetstream.StreamInfo{Created: s.created, Config: jetstream.StreamConfig{
		Name: queue.StreamName, Subjects: []string{"uploads.*.*"}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxBytes: int64(s.w.plan.maxBytes), //nolint:gosec // It is small.
	}}
	info.State = jetstream.StreamState{Bytes: s.bytes, FirstSeq: s.first, LastSeq: uint64(len(s.log))}
	for _, m := range s.log {
		if !m.purged {
			info.State.Msgs++
		}
	}
	if m := s.from(s.first); m != nil {
		info.State.FirstTime, info.State.LastTime = m.at, s.last
	}
	return info
}

// from returns the first message at or after a sequence, or nil.
func (s *stream) from(sequence uint64) *message {
	for _, m := range s.log[min(sequence-1, uint64(len(s.log))):] {
		if !m.purged {
			return m
		}
	}
	return nil
}

// purge deletes the messages below a sequence whose subjects begin with a prefix.
func (s *stream) purge(prefix string, end uint64) (n uint64) {
	for _, m := range s.log[:min(end-1, uint64(len(s.log)))] {
		if m.purged || !strings.HasPrefix(m.Subject, prefix) {
			continue
		}
		m.purged = true
		s.bytes -= messageBytes
		n++
		if s.consumer != nil {
			s.settle(s.consumer, m.sequence) // A consumer does not wait for what is gone.
		}
	}
	s.first = uint64(len(s.log)) + 1
	if m := s.from(1); m != nil {
		s.first = m.sequence
	}
	return n
}

// info is the state of a consumer.
func (c *consumer) info(s *stream) *jetstream.ConsumerInfo {
	info := &jetstream.ConsumerInfo{Created: c.created, Config: c.config, NumAckPending: len(c.held) + len(c.again)}
	info.AckFloor.Stream, info.Delivered.Stream = c.floor, c.next-1
	info.NumPending = c.pending(s)
	return info
}

func (c *consumer) pending(s *stream) (n uint64) {
	for _, m := range s.log[min(c.next-1, uint64(len(s.log))):] {
		if !m.purged {
			n++
		}
	}
	return n
}

// settle records that a message needs no further delivery.
func (s *stream) settle(c *consumer, sequence uint64) {
	s.release(c, sequence)
	c.acked[sequence] = true
	for c.acked[c.floor+1] {
		c.floor++
	}
}

// settled reports whether the workers have settled all messages.
func (s *stream) settled() bool { return s.consumer != nil && s.consumer.floor == uint64(len(s.log)) }

// isHeld reports whether a message was delivered and is not settled.
func (c *consumer) isHeld(sequence uint64) bool {
	return c.held[sequence] != nil || slices.Contains(c.again, sequence)
}

// release ends the wait for an acknowledgement.
func (s *stream) release(c *consumer, sequence uint64) {
	s.w.cancel(c.held[sequence])
	delete(c.held, sequence)
	c.again = slices.DeleteFunc(c.again, func(other uint64) bool { return other == sequence })
}

// wait delivers a message again after a time, unless it is settled or extended before.
func (s *stream) wait(c *consumer, sequence uint64, d time.Duration) {
	s.release(c, sequence)
	c.held[sequence] = s.w.after(d, "ack wait ends", func() {
		delete(c.held, sequence)
		c.again = append(c.again, sequence)
		s.pump()
	})
}

// pump schedules deliveries, if there is something to deliver.
func (s *stream) pump() {
	for _, c := range []*consumer{s.consumer, s.lane} {
		if c == nil || c.pumping || s.gone {
			continue
		}
		c.pumping = true
		s.w.after(s.w.latency(), "deliver", func() {
			c.pumping = false
			if s.deliver(c) {
				s.pump()
			}
		})
	}
}

// maxBuffered bounds the messages that wait in a process.
const maxBuffered = 64

// deliver sends some messages to one of the iterators of a consumer. It reports whether there is more to deliver.
func (s *stream) deliver(c *consumer) (more bool) {
	if s.gone {
		return false
	}
	open := slices.Clone(c.iterators)
	open = slices.DeleteFunc(open, func(i *iterator) bool { return !i.open() || len(i.buffer) >= maxBuffered })
	if len(open) == 0 {
		return false
	}
	to := open[s.w.rng.IntN(len(open))]
	var list []*delivered
	for range 1 + s.w.rng.IntN(24) {
		m := s.take(c)
		if m == nil {
			break
		}
		list = append(list, m)
		if s.w.happens(s.w.plan.deliverTwice) {
			list = append(list, m)
		}
	}
	if len(list) > 1 && s.w.happens(s.w.plan.reorder) {
		s.w.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	for _, m := range list {
		m.to = to
		to.buffer = append(to.buffer, m)
		s.w.record("%s gets %d, delivery %d", to.p.name, m.sequence, m.deliveries)
	}
	to.wake()
	return len(c.again) > 0 || c.pending(s) > 0
}

// take returns the next message to deliver, or nil.
func (s *stream) take(c *consumer) *delivered {
	var m *message
	if len(c.again) > 0 {
		m = s.log[c.again[0]-1]
		c.again = c.again[1:]
	} else {
		m = s.from(c.next)
		if m == nil {
			return nil
		}
		c.next = m.sequence + 1
	}
	c.delivered[m.sequence]++
	if c.config.AckPolicy == jetstream.AckExplicitPolicy {
		s.wait(c, m.sequence, s.w.plan.ackWait)
	}
	return &delivered{message: m, consumer: c, deliveries: c.delivered[m.sequence], pending: c.pending(s)}
}

func (s *stream) consumerFloor() uint64 {
	if s.consumer == nil {
		return 0
	}
	return s.consumer.floor
}
