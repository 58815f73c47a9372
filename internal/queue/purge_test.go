package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

func TestPurgeNeverTakesWhatNoWorkerSettled(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	f.publish(t, "a", "b", "c", "d", "e")

	purged, err := f.Purge(f.ctx, 0)
	require.NoError(t, err)
	require.Zero(t, purged, "no worker was there while the keep time passed")

	f.settle(t, 2)
	f.read(t, 2, func(msg jetstream.Msg) { // The first of the two stays open.
		if metadata, err := msg.Metadata(); err == nil && metadata.Sequence.Stream == 4 {
			require.NoError(t, msg.DoubleAck(f.ctx))
		}
	})
	purged, err = f.Purge(f.ctx, 0)
	require.NoError(t, err)
	require.Equal(t, uint64(2), purged)
	stream, _ := f.info(t)
	require.Equal(t, uint64(3), stream.State.FirstSeq)
	require.Equal(t, uint64(3), stream.State.Msgs)
}

func TestPurgeKeepsWhatIsYoung(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	for range 21 {
		f.publish(t, "a")
	}
	stream, err := f.js.Stream(f.ctx, queue.StreamName)
	require.NoError(t, err)
	eighth, err := stream.GetMsg(f.ctx, 8)
	require.NoError(t, err)
	f.settle(t, 21)

	_, err = f.Purge(f.ctx, time.Hour)
	require.NoError(t, err)
	info, _ := f.info(t)
	require.Equal(t, uint64(21), info.State.Msgs)

	// The edge drifts between the two clock readings, but no younger than now.
	purged, err := f.Purge(f.ctx, time.Since(eighth.Time))
	require.NoError(t, err)
	require.GreaterOrEqual(t, purged, uint64(7))
	info, _ = f.info(t)
	require.False(t, info.State.FirstTime.Before(eighth.Time))
}

func TestPurgeMakesRoomInAStreamThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	f := setup(t, queue.Config{Replicas: 1, MaxBytes: 1 << 20})
	require.NoError(t, f.Declare(f.ctx))
	part := strings.Repeat("x", 50_000)
	var texts []string
	for range 19 {
		texts = append(texts, part)
	}
	f.publish(t, texts...)

	purged, err := f.Purge(f.ctx, time.Hour)
	require.NoError(t, err)
	require.Zero(t, purged, "unprocessed uploads stay, however full the stream")

	f.settle(t, 19)
	purged, err = f.Purge(f.ctx, time.Hour)
	require.NoError(t, err)
	require.Positive(t, purged)
	stream, _ := f.info(t)
	require.Less(t, float64(stream.State.Bytes), 0.8*(1<<20))
	require.Greater(t, float64(stream.State.Bytes), 0.6*(1<<20), "what fits stays for a replay")
}

func TestStateTellsBacklogAndAge(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	state, err := f.State(f.ctx)
	require.NoError(t, err)
	require.Zero(t, state.Waiting)
	require.Zero(t, state.Oldest)
	require.Equal(t, int64(64<<20), state.MaxBytes)

	f.publish(t, "a", "b", "c")
	require.Eventually(t, func() bool { // The server counts a moment after it stored.
		state, err = f.State(f.ctx)
		return err == nil && state.Waiting == 3
	}, patience, 10*time.Millisecond)
	require.WithinDuration(t, time.Now(), state.Oldest, patience)
	first := state.Oldest

	f.settle(t, 1)
	state, err = f.State(f.ctx)
	require.NoError(t, err)
	require.False(t, state.Oldest.Before(first))

	f.settleAll(t)
	state, err = f.State(f.ctx)
	require.NoError(t, err)
	require.Zero(t, state.Oldest)
	require.Zero(t, state.Unacknowledged)
}

// settleAll acknowledges until nothing is open; what a reader gave back comes again.
func (f *fixture) settleAll(t *testing.T) {
	t.Helper()
	for {
		_, consumer := f.info(t)
		if consumer.NumPending == 0 && consumer.NumAckPending == 0 {
			return
		}
		f.settle(t, 1)
	}
}
