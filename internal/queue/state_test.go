package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

func TestState(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	state, err := e.State(e.ctx)
	require.NoError(t, err)
	require.Zero(t, state.Waiting)
	require.Zero(t, state.Oldest)
	require.Equal(t, int64(64<<20), state.MaxBytes)

	e.publish(t, "a", "b", "c")
	require.Eventually(t, func() bool { // The server counts a message a moment after it stored it.
		state, err = e.State(e.ctx)
		return err == nil && state.Waiting == 3
	}, patience, 10*time.Millisecond)
	require.WithinDuration(t, time.Now(), state.Oldest, patience)
	first := state.Oldest

	e.settle(t, 1)
	state, err = e.State(e.ctx)
	require.NoError(t, err)
	require.False(t, state.Oldest.Before(first))

	e.settle(t, 2)
	state, err = e.State(e.ctx)
	require.NoError(t, err)
	require.Zero(t, state.Oldest)
	require.Zero(t, state.Unacknowledged)
}

func TestPurge(t *testing.T) {
	t.Parallel()

	t.Run("never deletes what is not settled", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c", "d", "e")

		purged, err := e.Purge(e.ctx, 0)
		require.NoError(t, err)
		require.Zero(t, purged, "no worker settled them")

		e.settle(t, 2)
		e.settleIf(t, 2, func(sequence uint64) bool { return sequence == 4 })
		purged, err = e.Purge(e.ctx, 0)
		require.NoError(t, err)
		require.Equal(t, uint64(2), purged)
		stream, _ := e.info(t)
		require.Equal(t, uint64(3), stream.State.FirstSeq)
		require.Equal(t, uint64(3), stream.State.Msgs)
	})

	t.Run("deletes nothing that a replay has just started with", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c")
		e.settle(t, 3)
		nc, err := queue.Connect(e.server.URL, t.Name(), zerolog.Nop())
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
		operator, _ := open(t, nc, small)
		e.BeforeStream(func() { require.NoError(t, operator.Replay(e.ctx, nil)) })

		purged, err := e.Purge(e.ctx, 0)
		require.NoError(t, err)
		require.Zero(t, purged)
		require.Len(t, e.consume(t, 3), 3)
	})

	t.Run("keeps messages that are not old", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		for range 21 {
			e.publish(t, "a")
		}
		eighth := e.storedAt(t, 8)
		e.settle(t, 21)

		_, err := e.Purge(e.ctx, time.Hour)
		require.NoError(t, err)
		info, _ := e.info(t)
		require.Equal(t, uint64(21), info.State.Msgs)

		// The clock advances between the two calls, so Purge may delete more.
		purged, err := e.Purge(e.ctx, time.Since(eighth))
		require.NoError(t, err)
		require.GreaterOrEqual(t, purged, uint64(7))
		info, _ = e.info(t)
		require.GreaterOrEqual(t, info.State.FirstSeq, uint64(8))
	})
}

// Purge deletes settled messages before their age when the stream is nearly full.
func TestPurgeNearlyFull(t *testing.T) {
	t.Parallel()
	e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: 1 << 20})
	part := strings.Repeat("x", 50_000)
	var texts []string
	for range 19 {
		texts = append(texts, part)
	}
	e.publish(t, texts...)

	purged, err := e.Purge(e.ctx, time.Hour)
	require.NoError(t, err)
	require.Zero(t, purged, "uploads that are not settled stay in a full stream")

	e.settle(t, 19)
	purged, err = e.Purge(e.ctx, time.Hour)
	require.NoError(t, err)
	require.Positive(t, purged)
	stream, _ := e.info(t)
	require.Less(t, float64(stream.State.Bytes), 0.8*(1<<20))
	require.Greater(t, float64(stream.State.Bytes), 0.6*(1<<20), "the rest stays for a replay")
}

func TestReplay(t *testing.T) {
	t.Parallel()

	t.Run("delivers the whole stream again", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c")
		e.settle(t, 3)

		require.NoError(t, e.Replay(e.ctx, nil))
		require.Equal(t, []uint64{1, 2, 3}, e.settle(t, 3))
	})

	// The server removes the files of a consumer after it has confirmed the deletion, and fails to create the next one if
	// that takes long. A stream without a consumer delivers nothing.
	t.Run("creates the consumer again if the server fails at first", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c")
		e.FailCreateConsumer(2)
		require.NoError(t, e.Replay(e.ctx, nil))
		require.Equal(t, []uint64{1, 2, 3}, e.settle(t, 3))
		e.FailCreateConsumer(1000)
		require.ErrorIs(t, e.Replay(e.ctx, nil), jetstream.ErrConsumerCreate)
	})
}

func TestReplaySince(t *testing.T) {
	t.Parallel()

	t.Run("delivers a later part again", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a")
		e.publish(t, "b")
		e.publish(t, "c")
		e.settle(t, 3)

		since := e.storedAt(t, 2)
		require.NoError(t, e.Replay(e.ctx, &since))
		require.Equal(t, []uint64{2, 3}, e.settle(t, 2))
		require.NoError(t, e.Declare(e.ctx), "Declare keeps the start of a replay")
		_, consumer := e.info(t)
		require.Equal(t, jetstream.DeliverByStartTimePolicy, consumer.Config.DeliverPolicy)
	})

	t.Run("skips nothing with a start in the future", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		future := time.Now().Add(time.Hour)
		require.NoError(t, e.Replay(e.ctx, &future))
		e.publish(t, "a")
		e.settle(t, 1)
		require.NoError(t, e.Replay(e.ctx, &future))
		_, consumer := e.info(t)
		require.Equal(t, e.storedAt(t, 1), *consumer.Config.OptStartTime)
		e.publish(t, "b")
		require.Equal(t, []uint64{1, 2}, e.settle(t, 2))
	})

	t.Run("delivers messages that are not settled as well", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		for range 4 {
			e.publish(t, "a")
		}
		e.settle(t, 1)

		since := e.storedAt(t, 4)
		require.NoError(t, e.Replay(e.ctx, &since))
		require.Equal(t, []uint64{2, 3, 4}, e.settle(t, 3))
	})
}
