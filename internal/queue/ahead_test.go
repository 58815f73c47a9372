package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// ahead reads n messages past the line.
func (f *fixture) ahead(t *testing.T, since time.Time, n int) (list []queue.Delivery) {
	t.Helper()
	messages, err := f.Ahead(f.ctx, since)
	require.NoError(t, err)
	defer messages.Stop()
	for range n {
		msg, err := messages.Next(jetstream.NextContext(f.ctx))
		require.NoError(t, err)
		d, err := queue.Describe(msg)
		require.NoError(t, err)
		list = append(list, d)
	}
	return list
}

func TestAheadSettlesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a", "b", "c")
	for i, d := range f.ahead(t, time.Now().Add(-time.Hour), 3) {
		require.Equal(t, uint64(i+1), d.Arrival.Sequence)
		require.Equal(t, []string{"dev:0", "dev:1", "dev:2"}[i], d.HardwareID)
		require.Equal(t, uint64(2-i), d.Behind)
		require.WithinDuration(t, time.Now(), d.Arrival.At, patience)
	}
	_, consumer := f.info(t)
	require.Zero(t, consumer.Delivered.Consumer)
	f.settle(t, 3)
	_, consumer = f.info(t)
	require.Equal(t, uint64(3), consumer.AckFloor.Stream)
}

// Who comes second reads on; the consumer of all who read ahead goes by itself, and keeps nothing on disk.
func TestAheadIsShared(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a", "b")
	stream, err := f.js.Stream(f.ctx, queue.StreamName)
	require.NoError(t, err)
	second, err := stream.GetMsg(f.ctx, 2)
	require.NoError(t, err)
	require.Equal(t, uint64(2), f.ahead(t, second.Time, 1)[0].Arrival.Sequence)

	f.publish(t, "c")
	require.Equal(t, uint64(3), f.ahead(t, second.Time.Add(-time.Hour), 1)[0].Arrival.Sequence)
	consumer, err := f.js.Consumer(f.ctx, queue.StreamName, "ingest-ahead")
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, consumer.CachedInfo().Config.InactiveThreshold)
	require.True(t, consumer.CachedInfo().Config.MemoryStorage)

	f.server.Shutdown()
	_, err = f.Ahead(f.ctx, second.Time)
	require.Error(t, err)
}
