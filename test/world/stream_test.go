package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

const (
	testAckWait  = 3 * time.Second // Long, so that on a busy machine nothing is delivered again before it is settled.
	testMaxBytes = 64 << 10
	testMessage  = 20 << 10 // Three of them fit.
)

// TestStream uses NATS and the model in the same way, and compares what the queue observes.
func TestStream(t *testing.T) {
	t.Parallel()
	server := natstest.New(t)
	nc, err := queue.Connect(server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, proctest.Patience, time.Millisecond)
	q, err := queue.New(nc, queue.Config{Replicas: 1, MaxBytes: testMaxBytes})
	require.NoError(t, err)
	require.NoError(t, q.DeclareMissing(t.Context()))
	js, err := jetstream.New(nc.Conn)
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	config := consumer.CachedInfo().Config
	config.AckWait = testAckWait
	_, err = js.UpdateConsumer(t.Context(), queue.StreamName, config)
	require.NoError(t, err)
	want := observe(t.Context(), q)

	synctest.Test(t, func(t *testing.T) {
		w := &World{rng: newRNG(1, 0), began: time.Now(), wake: make(chan struct{}, 1)}
		w.plan = plan{ackWait: testAckWait, maxBytes: 3 * messageBytes}
		w.stream = newStream(w)
		p := w.startPublisher()
		var got []string
		require.True(t, w.runWhile(func() {
			_ = p.queue.DeclareMissing(p.ctx)
			got = observe(p.ctx, p.queue)
		}), got)
		p.die()
		require.Equal(t, want, got)
	})
	require.Len(t, want, 21, want)
}

// observe publishes and consumes messages, and returns what it saw.
func observe(ctx context.Context, q *queue.Queue) (seen []string) {
	see := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
	publish := func(name string, bytes int) {
		sequences, err := q.Publish(ctx, []queue.Message{{HardwareID: name, Text: []byte(strings.Repeat(name, bytes))}})
		var refused *jetstream.APIError
		full := errors.As(err, &refused) && refused.ErrorCode == errFull.ErrorCode
		see("publish %s: sequence %d, full %t, ok %t", name, sequences[0], full, err == nil)
	}
	for _, name := range []string{"a", "b", "c"} {
		publish(name, testMessage)
	}
	publish("d", testMessage)
	consumer, err := q.Consume(ctx)
	see("consume: %v", err)
	next := func(pending bool) *queue.Delivery {
		d, err := consumer.Next(ctx)
		if err != nil {
			see("next: closed %t", errors.Is(err, jetstream.ErrConsumerDeleted))
			return nil
		}
		text := fmt.Sprintf("next: %s %d, delivery %d", d.HardwareID, d.Arrival.Sequence, d.Deliveries)
		if pending {
			text += fmt.Sprintf(", %d pending", d.Pending)
		}
		see("%s", text)
		return d
	}
	a, b := next(true), next(true)
	next(true) // c, which nobody settles
	_ = a.Ack()
	_ = b.Nak(0)
	_ = next(false).Ack() // b again, at once
	c := next(false)      // after the AckWait
	_ = c.Nak(testAckWait / 2)
	_ = next(false).Ack() // c
	_ = q.Flush(ctx)
	_ = c.Ack() // of a former delivery, which is settled
	purged, err := q.Purge(ctx, time.Hour, func(context.Context) []roomsensor.StreamShare { return nil })
	see("purged: %d early, first %d, %v", purged.Early, purged.First, err)
	publish("e", testMessage)
	_ = next(true).Ack()
	_ = q.Flush(ctx)
	see("replay: %v", q.Replay(ctx, nil))
	next(false) // The consumer is gone.
	consumer.Stop()
	consumer, err = q.Consume(ctx)
	see("consume: %v", err)
	for range 3 {
		if d := next(false); d != nil {
			_ = d.Ack()
		}
	}
	_ = q.Flush(ctx)
	state, err := q.State(ctx)
	see("state: %d waiting, %d unacknowledged, %v", state.Waiting, state.Unacknowledged, err)
	consumer.Stop()
	return seen
}
