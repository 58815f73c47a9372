package queue_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// A removed message holds up nothing, whether it waits for a worker, for its redelivery, or for its acknowledgement.
func TestRemove(t *testing.T) {
	t.Parallel()
	e := newEnv(t, small)
	team := uuid.New()
	_, err := e.Publish(e.ctx, []queue.Message{
		{HardwareID: "dev:1", Team: &team, Text: []byte("a")}, {HardwareID: "dev:2"}, {HardwareID: "dev:3"}, {HardwareID: "dev:4"},
	})
	require.NoError(t, err)
	consumer, err := e.Consume(e.ctx)
	require.NoError(t, err)
	defer consumer.Stop()
	list := e.take(t, consumer, 3)
	require.NoError(t, list[0].Nak(time.Hour))
	require.NoError(t, list[1].Ack())
	require.NoError(t, e.Flush(e.ctx))

	for sequence := range uint64(4) {
		got, err := e.Unsettled(e.ctx, sequence+1)
		require.NoError(t, err)
		if sequence == 0 {
			require.Equal(t, list[0].Arrival, got.Arrival)
			require.Empty(t, got.HardwareID)
			require.Equal(t, "a", string(got.Text))
		}
	}
	for _, sequence := range []uint64{1, 3, 4} {
		require.NoError(t, e.Remove(e.ctx, sequence))
	}
	require.Eventually(t, func() bool { _, info := e.info(t); return info.AckFloor.Stream == 4 }, patience, time.Millisecond)
	for _, sequence := range []uint64{1, 2, 4, 5} {
		_, err := e.Unsettled(e.ctx, sequence)
		require.ErrorIs(t, err, queue.ErrSettled, sequence)
	}
}
