package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/natstest"
	"roomsensor/internal/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const patience = 30 * time.Second

type fixture struct {
	*queue.Queue
	server *natstest.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	ctx    context.Context //nolint:containedctx // Of the test.
}

func setup(t *testing.T, config queue.Config) *fixture {
	t.Helper()
	return on(t, natstest.New(t), config)
}

func on(t *testing.T, server *natstest.Server, config queue.Config) *fixture {
	t.Helper()
	f := &fixture{server: server}
	f.nc = connect(t, server)
	f.Queue, f.js = open(t, f.nc, config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f.ctx = ctx
	return f
}

var small = queue.Config{Replicas: 1, MaxBytes: 64 << 20}

func connect(t *testing.T, server *natstest.Server) *nats.Conn {
	t.Helper()
	nc, err := queue.Connect(server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	return nc
}

func open(t *testing.T, nc *nats.Conn, config queue.Config) (*queue.Queue, jetstream.JetStream) {
	t.Helper()
	q, err := queue.New(nc, config)
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return q, js
}

func (f *fixture) publish(t *testing.T, texts ...string) []uint64 {
	t.Helper()
	sequences, err := f.Publish(f.ctx, messages(texts...))
	require.NoError(t, err)
	return sequences
}

func messages(texts ...string) (list []queue.Message) {
	for i, text := range texts {
		list = append(list, queue.Message{HardwareID: fmt.Sprintf("dev:%d", i), Text: []byte(text)})
	}
	return list
}

func (f *fixture) info(t *testing.T) (jetstream.StreamInfo, jetstream.ConsumerInfo) {
	t.Helper()
	stream, err := f.js.Stream(f.ctx, queue.StreamName)
	require.NoError(t, err)
	consumer, err := stream.Consumer(f.ctx, queue.ConsumerName)
	require.NoError(t, err)
	return *stream.CachedInfo(), *consumer.CachedInfo()
}

// read takes n messages and hands each to do.
func (f *fixture) read(t *testing.T, n int, do func(jetstream.Msg)) {
	t.Helper()
	messages, err := f.Messages(f.ctx)
	require.NoError(t, err)
	defer f.giveBack(t, messages)
	for range n {
		msg, err := messages.Next(jetstream.NextContext(f.ctx))
		require.NoError(t, err)
		do(msg)
	}
}

// giveBack returns what was fetched beyond what the test wanted.
func (f *fixture) giveBack(t *testing.T, messages jetstream.MessagesContext) {
	t.Helper()
	messages.Drain()
	for {
		msg, err := messages.Next()
		if err != nil {
			require.ErrorIs(t, err, jetstream.ErrMsgIteratorClosed)
			break
		}
		require.NoError(t, msg.Nak())
	}
	require.NoError(t, f.Flush(f.ctx))
}

// settle takes n messages and acknowledges them.
func (f *fixture) settle(t *testing.T, n int) {
	t.Helper()
	f.read(t, n, func(msg jetstream.Msg) { require.NoError(t, msg.DoubleAck(f.ctx)) })
}
