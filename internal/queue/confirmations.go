package queue

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// unconfirmedFor is the time for which missing confirmations count after the last one: a process that is not ready gets
// no uploads that could show that the stream confirms again.
const unconfirmedFor = 30 * time.Second

// confirmations knows whether the stream confirms the messages of this process. After an error of its disk, a stream
// responds to all other requests, but confirms nothing until the server restarts.
type confirmations struct {
	failing atomic.Bool // the last message was not confirmed

	mu          sync.Mutex
	first, last time.Time // failures since the last confirmation
	connection  uint64    // the connection of these failures, as the number of reconnects before it
}

// record notes what became of a message.
func (c *confirmations) record(err error, connection uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.failing.Store(false)
	case !isUnconfirmed(err):
	case c.failing.Load() && c.count(connection, now):
		c.last = now
	default:
		c.failing.Store(true)
		c.first, c.last, c.connection = now, now, connection
	}
}

// missing reports whether the stream has confirmed nothing between two failures that are at least ackTimeout apart, so
// that a message that was sent after the first one failed, too.
func (c *confirmations) missing(connection uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing.Load() && c.count(connection, now) && c.last.Sub(c.first) >= ackTimeout
}

// count reports whether the failures still count: another connection may be to a server that was restarted. The caller
// holds the mutex.
func (c *confirmations) count(connection uint64, now time.Time) bool {
	return c.connection == connection && now.Sub(c.last) < unconfirmedFor
}

// isUnconfirmed reports whether an error is that of a stream that does not confirm messages: no answer, or a failure of
// the server. A full stream does not count, nor does the fault of a message.
func isUnconfirmed(err error) bool {
	const storeFailed = 10077 // The stream is full: the server does not answer after other failures to store.
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok {
		return refused.Code >= http.StatusInternalServerError && refused.ErrorCode != storeFailed
	}
	return errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// recordConfirmation notes what became of a message.
func (q *Queue) recordConfirmation(err error) {
	if err != nil || q.confirmations.failing.Load() { // The number of reconnects takes a lock of the connection.
		q.confirmations.record(err, q.nc.Stats().Reconnects, time.Now())
	}
}

// Unconfirmed reports whether the stream confirms no messages of this process, although it may respond to Check. It is
// false again after a confirmation, on a new connection, and unconfirmedFor after the last failure.
func (q *Queue) Unconfirmed() bool {
	return q.confirmations.failing.Load() && q.confirmations.missing(q.nc.Stats().Reconnects, time.Now())
}
