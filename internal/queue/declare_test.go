package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
	"roomsensor/test/natstest"
)

func TestDeclare(t *testing.T) {
	t.Parallel()

	t.Run("creates a stream that drops nothing", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)

		stream, consumer := e.info(t)
		require.Equal(t, []string{"uploads.*.*"}, stream.Config.Subjects)
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
	})

	t.Run("changes nothing when many processes call it", func(t *testing.T) {
		t.Parallel()
		e := newEnvOn(t, natstest.New(t), small)
		group, ctx := errgroup.WithContext(e.ctx)
		for range 8 {
			process := newEnvOn(t, e.server, small)
			group.Go(func() error { return process.DeclareMissing(ctx) })
		}
		require.NoError(t, group.Wait())
		before, consumerBefore := e.info(t)
		require.NoError(t, e.Declare(e.ctx))
		after, consumerAfter := e.info(t)
		require.Equal(t, before.Config, after.Config)
		require.Equal(t, consumerBefore.Config, consumerAfter.Config)
		require.Equal(t, consumerBefore.Created, consumerAfter.Created)
	})
}

func TestDeclareExisting(t *testing.T) {
	t.Parallel()

	t.Run("keeps limits that an operator raised", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		stream, consumer := e.info(t)
		stream.Config.MaxBytes = 128 << 20
		stream.Config.Subjects = append(stream.Config.Subjects, "elsewhere")
		_, err := e.js.UpdateStream(e.ctx, stream.Config)
		require.NoError(t, err)
		consumer.Config.AckWait = 5 * time.Minute
		consumer.Config.MaxAckPending = 70_000
		_, err = e.js.UpdateConsumer(e.ctx, queue.StreamName, consumer.Config)
		require.NoError(t, err)

		require.NoError(t, e.Declare(e.ctx))
		streamAfter, consumerAfter := e.info(t)
		require.Equal(t, int64(128<<20), streamAfter.Config.MaxBytes)
		require.Equal(t, []string{"uploads.*.*", "elsewhere"}, streamAfter.Config.Subjects)
		require.Equal(t, 5*time.Minute, consumerAfter.Config.AckWait)
		require.Equal(t, 70_000, consumerAfter.Config.MaxAckPending)
	})

	t.Run("keeps everything for a command", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		before, consumerBefore := e.info(t)
		large := newEnvOn(t, e.server, queue.Config{Replicas: 1, MaxBytes: 2 * small.MaxBytes})

		require.NoError(t, large.DeclareMissing(e.ctx))
		after, consumerAfter := e.info(t)
		require.Equal(t, before.Config, after.Config)
		require.Equal(t, consumerBefore.Config, consumerAfter.Config)

		require.NoError(t, e.js.DeleteConsumer(e.ctx, queue.StreamName, queue.ConsumerName))
		require.NoError(t, large.DeclareMissing(e.ctx))
		after, _ = e.info(t)
		require.Equal(t, before.Config, after.Config)
	})

	t.Run("corrects a stream that would drop messages", func(t *testing.T) {
		t.Parallel()
		e := newEnvOn(t, natstest.New(t), small)
		_, err := e.js.CreateStream(e.ctx, jetstream.StreamConfig{
			Name: queue.StreamName, Subjects: []string{"old"}, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxMsgsPerSubject: 1,
		})
		require.NoError(t, err)
		_, err = e.js.CreateConsumer(e.ctx, queue.StreamName, jetstream.ConsumerConfig{
			Durable: queue.ConsumerName, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 3, AckWait: time.Second, MaxAckPending: 10,
		})
		require.NoError(t, err)

		err = e.DeclareMissing(e.ctx)
		require.ErrorIs(t, err, queue.ErrSettings)
		require.ErrorContains(t, err, "run roomsensor stream update")
		require.NoError(t, e.Declare(e.ctx))
		require.NoError(t, e.DeclareMissing(e.ctx))
		stream, consumer := e.info(t)
		require.Equal(t, jetstream.DiscardNew, stream.Config.Discard)
		require.Zero(t, stream.Config.MaxAge)
		require.Equal(t, int64(-1), stream.Config.MaxMsgsPerSubject)
		require.Equal(t, int64(64<<20), stream.Config.MaxBytes)
		require.Contains(t, stream.Config.Subjects, "uploads.*.*")
		require.Equal(t, -1, consumer.Config.MaxDeliver)
		require.Equal(t, queue.AckWait, consumer.Config.AckWait)
		require.Greater(t, consumer.Config.MaxAckPending, 10)
	})

	t.Run("refuses settings that lose uploads", func(t *testing.T) {
		t.Parallel()
		e := newEnvOn(t, natstest.New(t), small)
		_, err := e.js.CreateStream(e.ctx, jetstream.StreamConfig{
			Name: queue.StreamName, Subjects: []string{"uploads.*.*"}, PersistMode: jetstream.AsyncPersistMode,
		})
		require.NoError(t, err)
		require.ErrorIs(t, e.Check(e.ctx), queue.ErrSettings)
		for _, consumer := range []jetstream.ConsumerConfig{
			{AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "uploads.-.a"},
			{AckPolicy: jetstream.AckNonePolicy},
		} {
			e := newEnvOn(t, natstest.New(t), small)
			require.NoError(t, e.DeclareMissingStream(e.ctx))
			consumer.Durable = queue.ConsumerName
			_, err := e.js.CreateConsumer(e.ctx, queue.StreamName, consumer)
			require.NoError(t, err)
			require.ErrorIs(t, e.CheckPosition(e.ctx), queue.ErrSettings)
			require.ErrorIs(t, e.Declare(e.ctx), queue.ErrSettings)
		}
	})

	t.Run("refuses a stream in memory", func(t *testing.T) {
		t.Parallel()
		e := newEnvOn(t, natstest.New(t), small)
		_, err := e.js.CreateStream(e.ctx, jetstream.StreamConfig{
			Name: queue.StreamName, Subjects: []string{"uploads.*.*"}, Storage: jetstream.MemoryStorage, MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		require.ErrorContains(t, e.Declare(e.ctx), "it must be of file storage")
	})
}
