package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// TestBacklog publishes uploads of a team whose limit is a sixteenth of 16 MiB, because another team has a backlog too.
func TestBacklog(t *testing.T) {
	t.Parallel()
	e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: 16 << 20})
	team, other := uuid.New(), uuid.New()
	publish := func(team *uuid.UUID, uploads int) error {
		list := make([]queue.Message, uploads)
		for i := range list {
			list[i] = queue.Message{HardwareID: "dev:1", Team: team, Text: []byte(strings.Repeat("x", 100_000))}
		}
		_, err := e.Publish(e.ctx, list)
		return err
	}
	stored := func() uint64 { stream, _ := e.info(t); return stream.State.Msgs }

	require.NoError(t, publish(&other, 1))
	require.NoError(t, publish(&team, 20), "one call may exceed the limit")
	bytes, limit := e.LargestBacklog()
	require.Equal(t, int64(1<<20), limit)
	require.GreaterOrEqual(t, bytes, int64(20*100_000))
	require.ErrorIs(t, publish(&team, 1), queue.ErrBacklog)
	require.Equal(t, uint64(21), stored(), "nothing of the refused call was published")
	require.NoError(t, publish(&other, 1))
	require.NoError(t, publish(nil, 12), "a trusted publisher has no limit")

	require.NoError(t, e.FreeBacklogs(e.ctx))
	require.ErrorIs(t, publish(&team, 1), queue.ErrBacklog, "no worker has received anything")

	// The database refuses a message for long. The others are stored, above the acknowledged floor.
	e.settleIf(t, 22, func(sequence uint64) bool { return sequence != 2 })
	require.NoError(t, e.FreeBacklogs(e.ctx))
	require.NoError(t, publish(&other, 1))
	require.NoError(t, publish(&team, 11))
	require.ErrorIs(t, publish(&team, 1), queue.ErrBacklog)

	// A replay delivers the stream again from the start.
	require.NoError(t, e.Replay(e.ctx, nil))
	require.NoError(t, e.FreeBacklogs(e.ctx))
	require.ErrorIs(t, publish(&team, 1), queue.ErrBacklog)
	e.settle(t, int(stored()))
	require.NoError(t, e.FreeBacklogs(e.ctx))
	bytes, _ = e.LargestBacklog()
	require.Zero(t, bytes)
	require.NoError(t, publish(&team, 11))
	require.NoError(t, publish(&team, 64), "while no other team has a backlog, half of the stream")
	require.NoError(t, publish(&team, 11))
	require.ErrorIs(t, publish(&team, 1), queue.ErrBacklog)
	require.NoError(t, publish(&other, 1))

	// The sequences of another stream begin again.
	e.Expect(time.Now())
	bytes, _ = e.LargestBacklog()
	require.Zero(t, bytes)
}

// TestBacklogOfFailedUploads checks that uploads that the stream refuses leave the backlog.
func TestBacklogOfFailedUploads(t *testing.T) {
	t.Parallel()
	e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: 100_000})
	team := uuid.New()
	sequences, err := e.Publish(e.ctx, []queue.Message{
		{HardwareID: "dev:1", Team: &team, Text: []byte(strings.Repeat("x", 60_000))},
		{HardwareID: "dev:1", Team: &team, Text: []byte(strings.Repeat("x", 60_000))},
	})
	require.Error(t, err)
	require.Equal(t, []uint64{1, 0}, sequences)
	bytes, _ := e.LargestBacklog()
	require.InDelta(t, 60_000, bytes, 1000)
}

// A team that is alone has half of the stream at all receivers together.
func TestBacklogOfReceivers(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: size})
	second := newEnvOn(t, e.server, queue.Config{Replicas: 1, MaxBytes: size})
	require.NoError(t, second.Check(t.Context()))
	message := queue.Message{HardwareID: "dev:1", Team: &uuid.UUID{1}, Text: []byte(strings.Repeat("x", 100_000))}
	for _, q := range []*queue.Queue{e.Queue, second.Queue} {
		var err error
		for err == nil {
			if _, err = q.Publish(t.Context(), []queue.Message{message}); err == nil {
				err = q.FreeBacklogs(t.Context())
			}
		}
		require.ErrorIs(t, err, queue.ErrBacklog)
	}
	stream, _ := e.info(t)
	require.InDelta(t, size/2+size/16, stream.State.Bytes, 300_000, "the second one has what a team always may have")
}
