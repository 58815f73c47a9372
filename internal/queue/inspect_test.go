package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	require.NoError(t, e.Check(e.ctx))
	info, err := e.Inspect(e.ctx)
	require.NoError(t, err)
	require.Zero(t, info.Messages)
	require.Zero(t, info.Oldest)
	require.Equal(t, e.Created(), info.Created)
	require.Equal(t, int64(64<<20), info.MaxBytes)
	require.Equal(t, 1, info.Replicas)
	require.Equal(t, []queue.ConsumerInfo{{Name: queue.ConsumerName}}, info.Consumers)

	e.publish(t, "a", "b", "c", "d")
	e.awaitWaiting(t, 4)
	first := e.storedAt(t, 1)
	e.settle(t, 1)
	// The second message is held: a worker returned it and received it again.
	consumer, err := e.js.Consumer(e.ctx, queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	msg, err := consumer.Next(jetstream.FetchMaxWait(patience))
	require.NoError(t, err)
	require.NoError(t, msg.Nak())
	require.Eventually(t, func() bool { // The server may deliver the third message first.
		msg, err = consumer.Next(jetstream.FetchMaxWait(patience))
		require.NoError(t, err)
		metadata, err := msg.Metadata()
		require.NoError(t, err)
		return metadata.NumDelivered == 2
	}, patience, time.Millisecond)

	info, err = e.Inspect(e.ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(4), info.Messages)
	require.Positive(t, info.Bytes)
	require.Equal(t, first.UTC(), info.Oldest, "a replay reaches back to the settled message")
	require.Equal(t, e.storedAt(t, 4).UTC(), info.Newest)
	ingest := info.Consumers[0]
	require.Equal(t, uint64(3), ingest.Waiting+uint64(ingest.Unacknowledged))
	require.Equal(t, 1, ingest.Redelivered)
	require.Equal(t, e.storedAt(t, 2), ingest.Oldest)
}
