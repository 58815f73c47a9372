package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
)

// endingContext ends when it is asked for its error for the nth time.
type endingContext struct {
	context.Context //nolint:containedctx // It is one.

	cancel func()
	asks   int
}

func (c *endingContext) Err() error {
	if c.asks--; c.asks == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// All requests of a team together have one window, so that the messages of another team wait for few of them.
func TestPublishWindow(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	of := func(team uuid.UUID, n int) []queue.Message {
		list := messages(slices.Repeat([]string{"x"}, n)...)
		for i := range list {
			list[i].Team = &team
		}
		return list
	}
	flooding, other, release := uuid.New(), uuid.New(), make(chan struct{})
	sent := e.Hold(flooding, release)
	const calls, each = 8, queue.PublishWindow / 2
	var group errgroup.Group
	for range calls {
		group.Go(func() error {
			sequences, err := e.Publish(e.ctx, of(flooding, each))
			if err == nil && slices.Contains(sequences, 0) {
				err = errors.New("a message was not confirmed")
			}
			return err
		})
	}
	require.Eventually(t, func() bool { return sent() == queue.PublishWindow }, patience, time.Millisecond)
	_, err := e.Publish(e.ctx, of(other, each))
	require.NoError(t, err)
	require.EqualValues(t, queue.PublishWindow, sent())

	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err = e.Publish(ctx, of(flooding, 1))
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	require.NoError(t, group.Wait())
	require.EqualValues(t, calls*each, sent())
}

func TestPublish(t *testing.T) {
	t.Parallel()

	t.Run("stores messages in their order", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		var texts []string
		for i := range 300 {
			texts = append(texts, strings.Repeat("x", i+1))
		}
		for i, sequence := range e.publish(t, texts...) {
			require.Equal(t, uint64(i+1), sequence)
		}
		for i, d := range e.consume(t, 300) {
			require.Equal(t, texts[i], string(d.Text))
		}
	})

	t.Run("leaves no message unconfirmed when its context ends", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		ctx := &endingContext{asks: 300}
		ctx.Context, ctx.cancel = context.WithCancel(e.ctx)
		sequences, err := e.Publish(ctx, messages(slices.Repeat([]string{"x"}, 500)...))
		require.ErrorIs(t, err, context.Canceled)
		stream, _ := e.info(t)
		// The first ask is for a whole window of 64. After that, a confirmation and a message each ask once.
		require.EqualValues(t, 64+149, stream.State.Msgs)
		require.EqualValues(t, 64+149, sequences[64+148])
		require.Zero(t, sequences[64+149])
	})

	t.Run("returns what a full stream did not store", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: 1 << 20})
		big := strings.Repeat("x", 300_000)
		sequences, err := e.Publish(e.ctx, messages(big, big, big, big, "small"))
		require.Error(t, err)
		require.Equal(t, []uint64{1, 2, 3, 0}, sequences[:4])

		e.settle(t, 3)
		purged, err := e.purge(0)
		require.NoError(t, err)
		require.Positive(t, purged.Messages)
		e.publish(t, big)
	})
}

// consume returns n deliveries.
func (e *env) consume(t *testing.T, n int) []*queue.Delivery {
	t.Helper()
	consumer, err := e.Consume(e.ctx)
	require.NoError(t, err)
	defer consumer.Stop()
	return e.take(t, consumer, n)
}

func (e *env) take(t *testing.T, consumer *queue.Consumer, n int) (list []*queue.Delivery) {
	t.Helper()
	for range n {
		d, err := consumer.Next(e.ctx)
		require.NoError(t, err)
		list = append(list, d)
	}
	return list
}

func TestConsume(t *testing.T) {
	t.Parallel()

	// A redelivery keeps its arrival (decision 39).
	t.Run("delivers arrival, unit and team, the same again after Nak", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		team := uuid.New()
		before := time.Now()
		_, err := e.Publish(e.ctx, []queue.Message{{HardwareID: "dev:1", Team: &team}, {HardwareID: "dev:2"}})
		require.NoError(t, err)
		_, err = e.js.PublishMsg(e.ctx, &nats.Msg{Subject: "uploads.nobody.x"})
		require.NoError(t, err)

		e.awaitWaiting(t, 3)

		consumer, err := e.Consume(e.ctx)
		require.NoError(t, err)
		defer consumer.Stop()
		got := e.take(t, consumer, 3)
		for i, d := range got {
			require.Equal(t, uint64(2-i), d.Pending)
			require.Equal(t, 1, d.Deliveries)
			require.NoError(t, d.Nak(0))
		}
		require.Equal(t, &team, got[0].Arrival.Team)
		require.Empty(t, got[0].HardwareID)
		require.Equal(t, "dev:2", got[1].HardwareID)
		require.Equal(t, uint64(1), got[0].Arrival.Sequence)
		require.WithinRange(t, got[0].Arrival.At, before.Truncate(time.Microsecond), time.Now())
		require.Zero(t, got[0].Arrival.At.Nanosecond()%1000)
		require.Empty(t, got[0].Invalid)
		require.Nil(t, got[1].Arrival.Team)
		require.NotEmpty(t, got[2].Invalid)

		arrivals := map[uint64]*queue.Delivery{}
		for _, d := range e.take(t, consumer, 3) {
			arrivals[d.Arrival.Sequence] = d
			require.Equal(t, 2, d.Deliveries)
			require.NoError(t, d.Ack())
		}
		for _, d := range got {
			require.Equal(t, d.Arrival, arrivals[d.Arrival.Sequence].Arrival)
			require.Equal(t, d.HardwareID, arrivals[d.Arrival.Sequence].HardwareID)
		}
		require.Eventually(t, func() bool { _, info := e.info(t); return info.AckFloor.Stream == 3 }, patience, time.Millisecond)
	})

	t.Run("sends acknowledgements, returns with a delay and extensions", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		acks, err := e.js.Conn().SubscribeSync("$JS.ACK.>")
		require.NoError(t, err)
		e.publish(t, "a", "b")
		list := e.consume(t, 2)
		list[0].Extend()
		require.NoError(t, list[0].Ack())
		require.NoError(t, list[1].Nak(time.Second))
		for _, want := range []string{"+WPI", "+ACK", `-NAK {"delay": 1000000000}`} {
			ack, err := acks.NextMsg(patience)
			require.NoError(t, err)
			require.Equal(t, want, string(ack.Data))
		}
	})
}

// priorityLane returns n deliveries of the priority lane. When it returns, the server knows that nobody reads the lane:
// Stop returns before that, and the server does not repeat a message of the lane that it sent to a consumer that stopped.
func (e *env) priorityLane(t *testing.T, since time.Time, n int) []*queue.Delivery {
	t.Helper()
	consumer, err := e.ConsumePriorityLane(e.ctx, since)
	require.NoError(t, err)
	list := e.take(t, consumer, n)
	consumer.Stop()
	require.Eventually(t, func() bool {
		lane, err := e.js.Consumer(e.ctx, queue.StreamName, "ingest-ahead")
		return err == nil && lane.CachedInfo().NumWaiting == 0
	}, patience, time.Millisecond)
	return list
}

func TestConsumePriorityLane(t *testing.T) {
	t.Parallel()

	t.Run("settles nothing", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c")
		for i, d := range e.priorityLane(t, time.Now().Add(-time.Hour), 3) {
			require.Equal(t, uint64(i+1), d.Arrival.Sequence)
			require.Equal(t, []string{"dev:0", "dev:1", "dev:2"}[i], d.HardwareID)
			require.Equal(t, uint64(2-i), d.Pending)
			require.WithinDuration(t, time.Now(), d.Arrival.At, patience)
		}
		_, consumer := e.info(t)
		require.Zero(t, consumer.Delivered.Consumer)
		e.settle(t, 3)
		_, consumer = e.info(t)
		require.Equal(t, uint64(3), consumer.AckFloor.Stream)
	})

	t.Run("shares its position, and is removed by the server", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b")
		second := e.storedAt(t, 2)
		require.Equal(t, uint64(2), e.priorityLane(t, second, 1)[0].Arrival.Sequence)

		e.publish(t, "c")
		require.Equal(t, uint64(3), e.priorityLane(t, second.Add(-time.Hour), 1)[0].Arrival.Sequence)
		consumer, err := e.js.Consumer(e.ctx, queue.StreamName, "ingest-ahead")
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, consumer.CachedInfo().Config.InactiveThreshold)
		require.True(t, consumer.CachedInfo().Config.MemoryStorage)

		e.server.Shutdown()
		_, err = e.ConsumePriorityLane(e.ctx, second)
		require.Error(t, err)
	})
}

func TestReplayEndsARunningConsumer(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	consumer, err := e.Consume(e.ctx)
	require.NoError(t, err)
	defer consumer.Stop()
	e.publish(t, "a")
	require.NoError(t, e.take(t, consumer, 1)[0].Ack())

	require.NoError(t, e.Replay(e.ctx, nil))
	_, err = consumer.Next(e.ctx)
	require.ErrorIs(t, err, jetstream.ErrConsumerDeleted)
	require.Equal(t, []uint64{1}, e.settle(t, 1))
}

// NATS keeps each subject in memory, and a client can make up units: all uploads of a team have one subject.
func TestSubjectOfTeam(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	team := uuid.New()
	_, err := e.Publish(e.ctx, []queue.Message{{HardwareID: "dev:1", Team: &team}, {HardwareID: "dev:2", Team: &team}})
	require.NoError(t, err)
	_, err = e.Publish(e.ctx, []queue.Message{{HardwareID: "dev:1"}, {HardwareID: "dev:2"}})
	require.NoError(t, err)
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	info, err := stream.Info(e.ctx, jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"uploads." + team.String() + ".-": 2, "uploads.-.dev:1": 1, "uploads.-.dev:2": 1},
		info.State.Subjects)
}
