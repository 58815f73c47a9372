package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/natstest"
	"roomsensor/internal/queue"
)

func TestDeclareMakesAStreamThatDropsNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))

	stream, consumer := f.info(t)
	require.Equal(t, []string{"uploads.*"}, stream.Config.Subjects)
	require.Equal(t, jetstream.FileStorage, stream.Config.Storage)
	require.Equal(t, jetstream.LimitsPolicy, stream.Config.Retention)
	require.Equal(t, jetstream.DiscardNew, stream.Config.Discard)
	require.Equal(t, int64(64<<20), stream.Config.MaxBytes)
	require.Zero(t, stream.Config.MaxAge)
	require.Equal(t, 1, stream.Config.Replicas)

	require.Equal(t, jetstream.AckExplicitPolicy, consumer.Config.AckPolicy)
	require.Equal(t, -1, consumer.Config.MaxDeliver)
	require.Equal(t, queue.AckWait, consumer.Config.AckWait)
	require.Equal(t, jetstream.DeliverAllPolicy, consumer.Config.DeliverPolicy)
}

func TestDeclareIsIdempotentForManyProcesses(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	group, ctx := errgroup.WithContext(f.ctx)
	for range 8 {
		group.Go(func() error { return f.Declare(ctx) })
	}
	require.NoError(t, group.Wait())
	before, consumerBefore := f.info(t)
	require.NoError(t, f.Declare(f.ctx))
	after, consumerAfter := f.info(t)
	require.Equal(t, before.Config, after.Config)
	require.Equal(t, consumerBefore.Config, consumerAfter.Config)
	require.Equal(t, consumerBefore.Created, consumerAfter.Created)
}

func TestDeclareKeepsWhatAnOperatorWidened(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	stream, consumer := f.info(t)
	stream.Config.MaxBytes = 128 << 20
	stream.Config.Subjects = append(stream.Config.Subjects, "elsewhere")
	_, err := f.js.UpdateStream(f.ctx, stream.Config)
	require.NoError(t, err)
	consumer.Config.AckWait = 5 * time.Minute
	consumer.Config.MaxAckPending = 70_000
	_, err = f.js.UpdateConsumer(f.ctx, queue.StreamName, consumer.Config)
	require.NoError(t, err)

	require.NoError(t, f.Declare(f.ctx))
	streamAfter, consumerAfter := f.info(t)
	require.Equal(t, int64(128<<20), streamAfter.Config.MaxBytes)
	require.Equal(t, []string{"uploads.*", "elsewhere"}, streamAfter.Config.Subjects)
	require.Equal(t, 5*time.Minute, consumerAfter.Config.AckWait)
	require.Equal(t, 70_000, consumerAfter.Config.MaxAckPending)
}

func TestDeclareMendsAStreamThatWouldDrop(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	_, err := f.js.CreateStream(f.ctx, jetstream.StreamConfig{
		Name: queue.StreamName, Subjects: []string{"old"}, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxMsgsPerSubject: 1,
	})
	require.NoError(t, err)
	_, err = f.js.CreateConsumer(f.ctx, queue.StreamName, jetstream.ConsumerConfig{
		Durable: queue.ConsumerName, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 3, AckWait: time.Second, MaxAckPending: 10,
	})
	require.NoError(t, err)

	require.NoError(t, f.Declare(f.ctx))
	stream, consumer := f.info(t)
	require.Equal(t, jetstream.DiscardNew, stream.Config.Discard)
	require.Zero(t, stream.Config.MaxAge)
	require.Equal(t, int64(-1), stream.Config.MaxMsgsPerSubject)
	require.Equal(t, int64(64<<20), stream.Config.MaxBytes)
	require.Contains(t, stream.Config.Subjects, "uploads.*")
	require.Equal(t, -1, consumer.Config.MaxDeliver)
	require.Equal(t, queue.AckWait, consumer.Config.AckWait)
	require.Greater(t, consumer.Config.MaxAckPending, 10)
}

func TestDeclareRefusesAStreamInMemory(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	_, err := f.js.CreateStream(f.ctx, jetstream.StreamConfig{
		Name: queue.StreamName, Subjects: []string{"uploads.*"}, Storage: jetstream.MemoryStorage, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	require.ErrorContains(t, f.Declare(f.ctx), "it must be of file storage")
}

func TestCheckMakesALostStreamAnew(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Check(f.ctx))
	require.NoError(t, f.js.DeleteStream(f.ctx, queue.StreamName))
	require.NoError(t, f.Check(f.ctx))
	f.publish(t, "a")
	f.settle(t, 1)
}

func TestCheckFailsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	natstest.Each(t, away)
}

func away(t *testing.T, server *natstest.Server) {
	t.Helper()
	f := on(t, server, small)
	require.NoError(t, f.Check(f.ctx))
	f.server.Shutdown()
	require.Error(t, f.Check(f.ctx))
	_, err := f.Publish(f.ctx, messages("lost at once"))
	require.Error(t, err)
	f.server.Restart(t)
	require.Eventually(t, func() bool { return f.Check(f.ctx) == nil }, patience, 50*time.Millisecond)
	f.publish(t, "here again")
}
