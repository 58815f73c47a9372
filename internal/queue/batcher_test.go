package queue

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// singleFuture is the confirmation of a message outside of a batch.
type singleFuture struct {
	jetstream.PubAckFuture
	confirmed chan *jetstream.PubAck
}

func (f singleFuture) Ok() <-chan *jetstream.PubAck { return f.confirmed }
func (f singleFuture) Err() <-chan error            { return nil }

// stubbed is a batcher whose messages are stored after a millisecond.
type stubbed struct {
	batcher
	group   sync.WaitGroup
	began   time.Time
	sizes   []int           // of the batches
	at      []time.Duration // when they were sent
	singles int
}

func newStubbed() *stubbed {
	s := &stubbed{began: time.Now()}
	s.batcher = batcher{allowed: func() bool { return true }, commit: func(list []*publication) (uint64, error) {
		s.sizes, s.at = append(s.sizes, len(list)), append(s.at, time.Since(s.began))
		time.Sleep(time.Millisecond)
		return 1, nil
	}, single: func(*nats.Msg) (jetstream.PubAckFuture, error) {
		s.singles++
		future := singleFuture{confirmed: make(chan *jetstream.PubAck, 1)}
		time.AfterFunc(time.Millisecond, func() { future.confirmed <- &jetstream.PubAck{} })
		return future, nil
	}}
	return s
}

// publishAfter publishes n messages after a delay, each by its own caller.
func (s *stubbed) publishAfter(t *testing.T, delay time.Duration, n int) {
	t.Helper()
	for range n {
		s.group.Go(func() {
			time.Sleep(delay)
			_, err := s.await(s.publish(&nats.Msg{})[0])
			require.NoError(t, err)
		})
	}
}

func TestBatcherGathers(t *testing.T) {
	t.Parallel()

	const callers = 2 * minBatch

	// firstBatch publishes a batch, and returns the batcher once it is confirmed.
	firstBatch := func(t *testing.T) *stubbed {
		t.Helper()
		s := newStubbed()
		s.busy = true // Nothing is sent until all messages wait.
		s.publishAfter(t, 0, callers)
		synctest.Wait()
		go s.run()
		s.group.Wait()
		require.Equal(t, []int{callers}, s.sizes)
		return s
	}

	t.Run("until as many messages wait as before", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := firstBatch(t)
			s.publishAfter(t, time.Millisecond, minBatch)
			s.publishAfter(t, gatherWait/2, callers-minBatch)
			s.group.Wait()
			require.Equal(t, []int{callers, callers}, s.sizes)
			require.Equal(t, time.Millisecond+gatherWait/2, s.at[1])
			require.Zero(t, s.singles)
		})
	})

	t.Run("not longer than gatherWait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := firstBatch(t)
			s.publishAfter(t, time.Millisecond, minBatch)
			s.group.Wait()
			require.Equal(t, []int{callers, minBatch}, s.sizes)
			require.Equal(t, time.Millisecond+gatherWait, s.at[1])
		})
	})

	t.Run("then too few messages for a batch are sent one by one", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := firstBatch(t)
			s.publishAfter(t, time.Millisecond, 3)
			time.Sleep(gatherWait)
			synctest.Wait()
			require.Equal(t, 3, s.singles)
			s.group.Wait()
			require.Equal(t, []int{callers}, s.sizes)
		})
	})
}
