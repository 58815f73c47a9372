package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
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
