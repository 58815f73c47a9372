package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// purge purges a stream that is not nearly full, or whose shares are unknown.
func (e *env) purge(keep time.Duration) (queue.Purged, error) {
	return e.Purge(e.ctx, keep, func(context.Context) []roomsensor.StreamShare { return nil })
}

func TestPurge(t *testing.T) {
	t.Parallel()

	t.Run("never deletes what is not settled", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c", "d", "e")

		purged, err := e.purge(0)
		require.NoError(t, err)
		require.Zero(t, purged.Messages, "no worker settled them")

		e.settle(t, 2)
		e.settleIf(t, 2, func(sequence uint64) bool { return sequence == 4 })
		purged, err = e.purge(0)
		require.NoError(t, err)
		require.Equal(t, uint64(2), purged.Messages)
		stream, _ := e.info(t)
		require.Equal(t, uint64(3), stream.State.FirstSeq)
		require.Equal(t, uint64(3), stream.State.Msgs)
	})

	t.Run("deletes nothing that a replay has just started with", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		e.publish(t, "a", "b", "c")
		e.settle(t, 3)
		operator := newEnvOn(t, e.server, small)
		e.BeforeStream(func() { require.NoError(t, operator.Replay(e.ctx, nil)) })

		purged, err := e.purge(0)
		require.NoError(t, err)
		require.Zero(t, purged.Messages)
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

		_, err := e.purge(time.Hour)
		require.NoError(t, err)
		info, _ := e.info(t)
		require.Equal(t, uint64(21), info.State.Msgs)

		// The clock advances between the two calls, so Purge may delete more.
		purged, err := e.purge(time.Since(eighth))
		require.NoError(t, err)
		require.GreaterOrEqual(t, purged.Messages, uint64(7))
		info, _ = e.info(t)
		require.GreaterOrEqual(t, info.State.FirstSeq, uint64(8))
	})
}

// publishAs publishes uploads of a team of a size, and returns a share for each.
func (e *env) publishAs(t *testing.T, team *uuid.UUID, uploads, size int) (shares []roomsensor.StreamShare) {
	t.Helper()
	list := make([]queue.Message, uploads)
	for i := range list {
		list[i] = queue.Message{HardwareID: "dev:1", Team: team, Text: []byte(strings.Repeat("x", size))}
	}
	sequences, err := e.Publish(e.ctx, list)
	require.NoError(t, err)
	for _, sequence := range sequences {
		share := roomsensor.StreamShare{Sequence: sequence, Bytes: int64(size)}
		if team != nil {
			share.Team = *team
		}
		shares = append(shares, share)
	}
	return shares
}

// left counts the messages of a team in the stream.
func (e *env) left(t *testing.T, team string) (messages uint64) {
	t.Helper()
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	info, err := stream.Info(e.ctx, jetstream.WithSubjectFilter("uploads."+team+".*"))
	require.NoError(t, err)
	for _, n := range info.State.Subjects {
		messages += n
	}
	return messages
}

// requireDown checks the size of a stream of a MiB that was purged early.
func (e *env) requireDown(t *testing.T) {
	t.Helper()
	stream, _ := e.info(t)
	require.LessOrEqual(t, float64(stream.State.Bytes), 0.8*(1<<20))
	require.Greater(t, float64(stream.State.Bytes), 0.6*(1<<20), "the rest stays for a replay")
}

// When the stream is nearly full, Purge deletes the oldest settled messages of the team with the most. The others keep
// theirs, also older ones, and many small ones.
func TestPurgeNearlyFull(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 e")
	tiny := queue.Config{Replicas: 1, MaxBytes: 1 << 20}
	always := func(shares []roomsensor.StreamShare) func(context.Context) []roomsensor.StreamShare {
		return func(context.Context) []roomsensor.StreamShare { return shares }
	}

	t.Run("of the largest team", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, tiny)
		small, large := uuid.New(), uuid.New()
		shares := e.publishAs(t, &small, 500, 100)
		shares = append(shares, e.publishAs(t, nil, 1, 52_500)...)
		shares = append(shares, e.publishAs(t, &large, 16, 52_500)...)
		purged, err := e.Purge(e.ctx, time.Hour, always(shares))
		require.NoError(t, err)
		require.Zero(t, purged.Early, "no worker settled them")

		e.settleIf(t, 517, func(sequence uint64) bool { return sequence < 510 })
		purged, err = e.Purge(e.ctx, time.Hour, always(shares))
		require.NoError(t, err)
		e.requireDown(t)
		require.Equal(t, uint64(3), purged.Early)
		require.Equal(t, map[uuid.UUID]uint64{large: 505}, purged.Before)
		require.Equal(t, []uint64{500, 1, 13}, []uint64{e.left(t, small.String()), e.left(t, queue.NoTeam), e.left(t, large.String())})
	})

	t.Run("of the largest team, then of two", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, tiny)
		small, one, other := uuid.New(), uuid.New(), uuid.New()
		shares := e.publishAs(t, &small, 500, 100)
		shares = append(shares, e.publishAs(t, &one, 9, 52_500)...)
		shares = append(shares, e.publishAs(t, &other, 8, 52_500)...)
		e.settle(t, 517)
		purged, err := e.Purge(e.ctx, time.Hour, always(shares))
		require.NoError(t, err)
		e.requireDown(t)
		require.Zero(t, purged.Messages)
		require.Equal(t, uint64(500), e.left(t, small.String()))
		require.InDelta(t, e.left(t, one.String()), e.left(t, other.String()), 1)
		require.Len(t, purged.Before, 2)
		require.Equal(t, uint64(1), purged.First)
	})

	t.Run("of all teams, without shares", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, tiny)
		e.publishAs(t, nil, 500, 100)
		e.publishAs(t, nil, 17, 52_500)
		e.settle(t, 517)
		purged, err := e.purge(time.Hour)
		require.NoError(t, err)
		e.requireDown(t)
		require.Greater(t, purged.Early, uint64(500), "also the small ones, which are the oldest")
	})
}
