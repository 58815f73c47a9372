package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

func (f *fixture) sequencesOf(t *testing.T, n int) (list []uint64) {
	t.Helper()
	f.read(t, n, func(msg jetstream.Msg) {
		metadata, err := msg.Metadata()
		require.NoError(t, err)
		list = append(list, metadata.Sequence.Stream)
		require.NoError(t, msg.DoubleAck(f.ctx))
	})
	_, consumer := f.info(t)
	require.Zero(t, consumer.NumPending)
	return list
}

func TestReplayGivesTheWholeStreamAgain(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a", "b", "c")
	f.settle(t, 3)

	require.NoError(t, f.Replay(f.ctx, nil))
	require.Equal(t, []uint64{1, 2, 3}, f.sequencesOf(t, 3))
}

// The server removes the files of a consumer after it confirmed that it is
// deleted, and fails to make the next one where that takes its time: once in
// some hundreds of replays. A stream without a consumer gives nothing to anybody.
func TestReplaysOneAfterTheOther(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a", "b", "c")
	for range 300 {
		require.NoError(t, f.Replay(f.ctx, nil))
	}
	require.Equal(t, []uint64{1, 2, 3}, f.sequencesOf(t, 3))
}

func TestReplaySinceGivesALaterPartAgain(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a")
	f.publish(t, "b")
	f.publish(t, "c")
	f.settle(t, 3)

	since := f.storedAt(t, 2)
	require.NoError(t, f.Replay(f.ctx, &since))
	require.Equal(t, []uint64{2, 3}, f.sequencesOf(t, 2))
	require.NoError(t, f.Declare(f.ctx), "a start of a replay is none of a declaration's business")
	_, consumer := f.info(t)
	require.Equal(t, jetstream.DeliverByStartTimePolicy, consumer.Config.DeliverPolicy)
}

// A start in the future would skip what arrives until then, once the server
// looks it up again.
func TestReplaySinceLaterThanEverythingSkipsNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	future := time.Now().Add(time.Hour)
	require.NoError(t, f.Replay(f.ctx, &future))
	f.publish(t, "a")
	f.settle(t, 1)
	require.NoError(t, f.Replay(f.ctx, &future))
	_, consumer := f.info(t)
	require.Equal(t, f.storedAt(t, 1), *consumer.Config.OptStartTime)
	f.publish(t, "b")
	require.Equal(t, []uint64{1, 2}, f.sequencesOf(t, 2))
}

func TestReplaySinceGivesUnsettledUploadsToo(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	for range 4 {
		f.publish(t, "a")
	}
	f.settle(t, 1)

	since := f.storedAt(t, 4)
	require.NoError(t, f.Replay(f.ctx, &since))
	require.Equal(t, []uint64{2, 3, 4}, f.sequencesOf(t, 3))
}

func (f *fixture) storedAt(t *testing.T, sequence uint64) time.Time {
	t.Helper()
	stream, err := f.js.Stream(f.ctx, queue.StreamName)
	require.NoError(t, err)
	msg, err := stream.GetMsg(f.ctx, sequence)
	require.NoError(t, err)
	return msg.Time
}

func TestReplayTellsARunningReader(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	messages, err := f.Messages(f.ctx)
	require.NoError(t, err)
	defer messages.Stop()
	f.publish(t, "a")
	msg, err := messages.Next()
	require.NoError(t, err)
	require.NoError(t, msg.DoubleAck(f.ctx))

	require.NoError(t, f.Replay(f.ctx, nil))
	_, err = messages.Next(jetstream.NextContext(f.ctx))
	require.ErrorIs(t, err, jetstream.ErrConsumerDeleted)
	require.Equal(t, []uint64{1}, f.sequencesOf(t, 1))
}
