package queue_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/natstest"
)

// published is the result of a call of Publish with one message.
type published struct {
	text     string
	sequence uint64
	err      error
}

// publishTogether publishes n messages of a size, each of its own team, at the same time.
func (e *env) publishTogether(n, size int) []published {
	list := make([]published, n)
	var group sync.WaitGroup
	for i := range list {
		group.Go(func() {
			p, team := &list[i], uuid.New()
			p.text = fmt.Sprint(i, strings.Repeat("x", size))
			sequences, err := e.Publish(e.ctx, []queue.Message{{HardwareID: "dev:1", Team: &team, Text: []byte(p.text)}})
			p.sequence, p.err = sequences[0], err
		})
	}
	group.Wait()
	return list
}

// requireStored checks that the stream has exactly the confirmed messages, each at its sequence, and returns how many of
// them were stored in batches.
func (e *env) requireStored(t *testing.T, list []published) (batched int) {
	t.Helper()
	confirmed := uint64(0)
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	for _, p := range list {
		if p.err != nil {
			require.Zero(t, p.sequence)
			continue
		}
		confirmed++
		stored, err := stream.GetMsg(e.ctx, p.sequence)
		require.NoError(t, err)
		require.Equal(t, p.text, string(stored.Data))
		if stored.Header.Get("Nats-Batch-Id") != "" {
			batched++
		}
	}
	require.Equal(t, confirmed, stream.CachedInfo().State.Msgs)
	return batched
}

func TestPublishBatches(t *testing.T) {
	t.Parallel()

	t.Run("messages of many calls share batches", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		require.NoError(t, e.Check(e.ctx))
		var list []published
		for batched := 0; batched == 0; batched = e.requireStored(t, list) { // On a busy machine, calls may not meet.
			list = append(list, e.publishTogether(500, 100)...)
			for _, p := range list {
				require.NoError(t, p.err)
			}
		}
	})

	t.Run("the messages of one call share a batch", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		require.NoError(t, e.Check(e.ctx))
		list := make([]published, 30)
		texts := make([]string, len(list))
		for i := range list {
			texts[i] = fmt.Sprint(i)
		}
		for i, sequence := range e.publish(t, texts...) {
			list[i] = published{text: texts[i], sequence: sequence}
		}
		require.Equal(t, len(list), e.requireStored(t, list))
	})

	t.Run("large messages are not in batches", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, small)
		require.Zero(t, e.requireStored(t, e.publishTogether(100, 20_000)))
	})

	t.Run("a full stream stores what fits", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, queue.Config{Replicas: 1, MaxBytes: 100_000})
		list := e.publishTogether(300, 1_000)
		e.requireStored(t, list)
		stored := 0
		for _, p := range list {
			if p.err == nil {
				stored++
			}
		}
		require.Greater(t, stored, 60, "a refused batch keeps no message out that fits")
		require.Less(t, stored, 100)
	})

	t.Run("a stream without batches stores messages one by one", func(t *testing.T) {
		t.Parallel()
		e := newEnvOn(t, natstest.New(t), small)
		_, err := e.js.CreateStream(e.ctx, jetstream.StreamConfig{Name: queue.StreamName, Subjects: []string{"uploads.*.*"}, Discard: jetstream.DiscardNew})
		require.NoError(t, err)
		require.NoError(t, e.Check(e.ctx))
		require.Zero(t, e.requireStored(t, e.publishTogether(200, 100)))
		require.NoError(t, e.Declare(e.ctx))
		stream, _ := e.info(t)
		require.True(t, stream.Config.AllowAtomicPublish)
	})
}
