package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The server syncs its disk for every message that it stores, but only once for an atomic batch. So while messages are
// in flight to the stream, those that arrive meanwhile wait, and share a batch.
const (
	// maxSingles is the number of messages in flight above which others wait.
	maxSingles = 16
	// minBatch is the number of messages from which a batch is cheaper for the server, which stores the messages of a
	// batch in files of their own until the last one arrives (bench/NOTES.md).
	minBatch = 24
	// maxBatch and maxBatchBytes bound a batch. The server accepts 1,000 messages.
	maxBatch      = 512
	maxBatchBytes = 512 << 10
	// batchText is the size in bytes up to which a message joins a batch. For a larger one, the sync costs little beside
	// the rest.
	batchText = 16 << 10
	// batchWait limits the wait of a message for others, unless a batch is in flight.
	batchWait = 2 * time.Millisecond
	// gatherWait limits the wait for the next messages of a batch's callers after the batch was confirmed. Without them,
	// the next batch would have only the messages that arrived meanwhile, and half of the callers would wait for each
	// batch.
	gatherWait = 10 * time.Millisecond
	// batchPause is the time for which messages are published one by one after a batch failed.
	batchPause = 10 * time.Second
)

// The headers of an atomic batch.
const (
	batchIDHeader       = "Nats-Batch-Id"
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// batcher publishes the messages of all callers, in the order of their arrival, in batches or one by one. Only a batch
// delays later messages: the stream would store them after it anyway.
type batcher struct {
	// single publishes a message outside of a batch, and fails for a message that cannot be sent.
	single func(*nats.Msg) (jetstream.PubAckFuture, error)
	// commit publishes messages as an atomic batch, and returns the stream sequence of the first one; the others follow
	// it.
	commit func([]*publication) (first uint64, err error)
	// allowed reports whether the stream accepts batches.
	allowed func() bool

	mu      sync.Mutex
	waiting []*publication
	busy    bool        // run is running
	singles int         // messages in flight outside of a batch
	late    bool        // those that wait have waited long enough
	timer   *time.Timer // sets late; nil before the first use
	paused  time.Time   // until then, there are no batches

	expected    int       // messages of the last batch, and those that waited when it was confirmed
	gatherUntil time.Time // until then, messages wait until there are as many
}

// publication is a message that was given to a batcher.
type publication struct {
	msg  *nats.Msg
	sent chan struct{} // closed once the fields below are set

	future   jetstream.PubAckFuture // of a message outside of a batch that was sent
	sequence uint64                 // in the stream, if it was confirmed
	err      error
}

// publish sends messages, now or soon.
func (b *batcher) publish(messages ...*nats.Msg) []*publication {
	list := make([]*publication, len(messages))
	for i, msg := range messages {
		list[i] = &publication{msg: msg, sent: make(chan struct{})}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, list...)
	b.wake()
	return list
}

// await returns the stream sequence of a message once the stream has stored it. It fails ackTimeout after the message
// was sent. It must be called once.
func (b *batcher) await(p *publication) (uint64, error) {
	<-p.sent
	if p.future == nil {
		return p.sequence, p.err
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.singles--
		b.wake()
	}()
	select {
	case ack := <-p.future.Ok():
		return ack.Sequence, nil
	case err := <-p.future.Err():
		return 0, fmt.Errorf("storing an upload in the queue: %w", err)
	}
}

// wake makes run continue if there is something to send now. The caller holds the lock.
func (b *batcher) wake() {
	if b.busy || len(b.waiting) == 0 {
		return
	}
	gathers := b.gathers()
	if _, asBatch := b.next(); !gathers && (asBatch || b.sendsSingly()) {
		b.busy = true
		go b.run()
		return
	}
	wait := batchWait
	if gathers {
		wait = time.Until(b.gatherUntil)
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, b.setLate)
	} else {
		b.timer.Reset(wait)
	}
}

// gathers reports whether messages wait for those of callers whose last ones were just confirmed.
func (b *batcher) gathers() bool {
	return len(b.waiting) < min(b.expected, maxBatch) && time.Now().Before(b.gatherUntil)
}

func (b *batcher) setLate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = true
	b.wake()
}

// next returns how many of the messages that wait are sent next, and whether as a batch.
func (b *batcher) next() (n int, asBatch bool) {
	for bytes := 0; n < min(len(b.waiting), maxBatch); n++ {
		size := len(b.waiting[n].msg.Data)
		if size > batchText || bytes+size > maxBatchBytes {
			break
		}
		bytes += size
	}
	return max(n, 1), n >= minBatch && !time.Now().Before(b.paused) && b.allowed()
}

// sendsSingly reports whether the first message that waits need not wait for others.
func (b *batcher) sendsSingly() bool {
	return b.singles < maxSingles || b.late || len(b.waiting[0].msg.Data) > batchText ||
		time.Now().Before(b.paused) || !b.allowed()
}

// run sends messages until those that are left should wait.
func (b *batcher) run() {
	for {
		list, asBatch := b.take()
		switch {
		case list == nil:
			return
		case !asBatch:
			b.sendSingly(list)
		default:
			if retry := b.sendBatch(list); retry {
				b.pause()
				b.sendSingly(list)
			} else {
				b.gather(len(list))
			}
		}
	}
}

// take returns the messages to send next, or nil if run must end.
func (b *batcher) take() (list []*publication, asBatch bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.waiting, b.busy, b.late = nil, false, false
		return nil, false
	}
	n, asBatch := b.next()
	if b.gathers() || (!asBatch && !b.sendsSingly()) {
		b.busy = false
		b.wake()
		return nil, false
	}
	switch {
	case asBatch:
	case b.late:
		b.late = false
	default:
		n = 1 // The others may wait for a batch.
	}
	list, b.waiting = b.waiting[:n:n], b.waiting[n:]
	return list, asBatch
}

// sendSingly publishes messages one by one, and does not wait for their confirmations.
func (b *batcher) sendSingly(list []*publication) {
	for _, p := range list {
		future, err := b.single(p.msg)
		if err != nil {
			p.err = fmt.Errorf("publishing an upload: %w", err)
		} else {
			p.future = future
			b.mu.Lock()
			b.singles++
			b.mu.Unlock()
		}
		close(p.sent)
	}
}

// gather makes messages wait for the next ones of the callers of a batch.
func (b *batcher) gather(messages int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected, b.gatherUntil = messages+len(b.waiting), time.Now().Add(gatherWait)
}

func (b *batcher) pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = time.Now().Add(batchPause)
}

// errBatchRefused is the error of a batch of which the stream has stored nothing.
var errBatchRefused = errors.New("the stream refused a batch")

// sendBatch publishes messages as an atomic batch and waits for its confirmation. If the stream has not stored them, it
// returns true and the messages are not settled: the fault of one message, or a stream that is almost full, must not
// affect the others. After a timeout they may be stored, and their senders send them again, as after a timeout of a
// single message. After a lost connection they may be stored, too: if the client is connected again by then, they are
// in the stream twice, which changes no reading (decision 39).
func (b *batcher) sendBatch(list []*publication) (retry bool) {
	first, err := b.commit(list)
	if err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		for _, p := range list {
			removeBatchHeaders(p.msg)
		}
		return true
	}
	for i, p := range list {
		if p.err = err; err == nil {
			p.sequence = first + uint64(i)
		}
		close(p.sent)
	}
	return false
}

// commitBatch is batcher.commit on the connection of the queue. The publisher of JetStream would not return how many
// messages a confirmation is for. Like that one, commitBatch fails when the connection is lost.
func (q *Queue) commitBatch(list []*publication) (first uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), ackTimeout)
	defer cancel()
	lost := q.nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer q.nc.RemoveStatusListener(lost)
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	id, last := []string{uuid.NewString()}, len(list)-1
	for i, p := range list[:last] {
		addBatchHeaders(p.msg, id, i+1)
		if err := q.nc.PublishMsg(p.msg); err != nil {
			return 0, fmt.Errorf("publishing a batch: %w", err)
		}
	}
	final := list[last].msg
	addBatchHeaders(final, id, len(list))
	final.Header[batchCommitHeader] = []string{"1"}
	reply, err := q.nc.RequestMsgWithContext(ctx, final)
	if err != nil {
		return 0, fmt.Errorf("storing a batch in the queue: %w", err)
	}
	return firstOf(reply.Data, len(list))
}

// addBatchHeaders makes a message one of a batch, with its number from 1 on.
func addBatchHeaders(msg *nats.Msg, id []string, number int) {
	if msg.Header == nil {
		msg.Header = make(nats.Header, 2)
	}
	msg.Header[batchIDHeader], msg.Header[batchSequenceHeader] = id, []string{strconv.Itoa(number)}
}

// removeBatchHeaders makes a message one outside of a batch again.
func removeBatchHeaders(msg *nats.Msg) {
	for _, name := range []string{batchIDHeader, batchSequenceHeader, batchCommitHeader} {
		delete(msg.Header, name)
	}
}

// firstOf reads the confirmation of a batch of some messages, and returns the stream sequence of the first one.
func firstOf(confirmation []byte, messages int) (uint64, error) {
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
		Count    int                 `json:"count"`
	}
	if err := json.Unmarshal(confirmation, &ack); err != nil {
		return 0, fmt.Errorf("reading the confirmation of a batch: %w", err)
	}
	switch {
	case ack.Error != nil:
		return 0, fmt.Errorf("%w: %w", errBatchRefused, ack.Error)
	case ack.Count != messages || ack.Sequence < uint64(messages): //nolint:gosec // Not negative.
		return 0, fmt.Errorf("%w: it confirmed %d of %d messages", errBatchRefused, ack.Count, messages)
	}
	return ack.Sequence - uint64(messages) + 1, nil //nolint:gosec // Not negative.
}
