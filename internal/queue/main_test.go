package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/queue"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits every wait of a test.
const patience = proctest.Patience

// env is a queue on a server of its own.
type env struct {
	*queue.Queue
	server *natstest.Server
	js     jetstream.JetStream
	ctx    context.Context //nolint:containedctx // Of the test.
}

var small = queue.Config{Replicas: 1, MaxBytes: 64 << 20}

// newEnv returns a queue whose stream is declared.
func newEnv(t *testing.T, config queue.Config) *env {
	t.Helper()
	e := newEnvOn(t, natstest.New(t), config)
	require.NoError(t, e.Declare(e.ctx))
	return e
}

// newEnvOn returns a queue on a server, without a stream.
func newEnvOn(t *testing.T, server *natstest.Server, config queue.Config) *env {
	t.Helper()
	nc, err := queue.Connect(server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	e := &env{server: server}
	e.Queue, e.js = open(t, nc, config)
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	t.Cleanup(cancel)
	e.ctx = ctx
	return e
}

func open(t *testing.T, nc *queue.Conn, config queue.Config) (*queue.Queue, jetstream.JetStream) {
	t.Helper()
	q, err := queue.New(nc, config)
	require.NoError(t, err)
	js, err := jetstream.New(nc.Conn)
	require.NoError(t, err)
	return q, js
}

func (e *env) publish(t *testing.T, texts ...string) []uint64 {
	t.Helper()
	sequences, err := e.Publish(e.ctx, messages(texts...))
	require.NoError(t, err)
	return sequences
}

func messages(texts ...string) (list []queue.Message) {
	for i, text := range texts {
		list = append(list, queue.Message{HardwareID: fmt.Sprintf("dev:%d", i), Text: []byte(text)})
	}
	return list
}

func (e *env) info(t *testing.T) (jetstream.StreamInfo, jetstream.ConsumerInfo) {
	t.Helper()
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	consumer, err := stream.Consumer(e.ctx, queue.ConsumerName)
	require.NoError(t, err)
	return *stream.CachedInfo(), *consumer.CachedInfo()
}

// storedAt returns when the stream stored a message.
func (e *env) storedAt(t *testing.T, sequence uint64) time.Time {
	t.Helper()
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	msg, err := stream.GetMsg(e.ctx, sequence)
	require.NoError(t, err)
	return msg.Time
}

// awaitWaiting waits until the server counts n messages that wait for a worker. It counts a message a moment after it
// stored it.
func (e *env) awaitWaiting(t *testing.T, n uint64) {
	t.Helper()
	require.Eventually(t, func() bool { _, info := e.info(t); return info.NumPending == n }, patience, time.Millisecond)
}

// settle acknowledges the next n messages and returns their sequences. The server has applied the acknowledgements.
func (e *env) settle(t *testing.T, n int) []uint64 {
	t.Helper()
	return e.settleIf(t, n, func(uint64) bool { return true })
}

// settleIf acknowledges those of the next n messages whose sequence satisfies a condition.
func (e *env) settleIf(t *testing.T, n int, condition func(sequence uint64) bool) (sequences []uint64) {
	t.Helper()
	consumer, err := e.js.Consumer(e.ctx, queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	for len(sequences) < n {
		batch, err := consumer.Fetch(n-len(sequences), jetstream.FetchMaxWait(patience))
		require.NoError(t, err)
		for msg := range batch.Messages() {
			metadata, err := msg.Metadata()
			require.NoError(t, err)
			sequences = append(sequences, metadata.Sequence.Stream)
			if condition(metadata.Sequence.Stream) {
				require.NoError(t, msg.DoubleAck(e.ctx))
			}
		}
		require.NoError(t, batch.Error())
	}
	return sequences
}
