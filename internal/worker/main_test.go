package worker

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// patience limits every wait of a test.
const patience = proctest.Patience

// streamBytes is the size limit of the stream of most tests.
const streamBytes = 256 << 20

// env is a real queue.
type env struct {
	server *natstest.Server
	js     jetstream.JetStream
	queue  *queue.Queue
	room   int64           // of the stream, in bytes
	ctx    context.Context //nolint:containedctx // Of the test.
}

func newEnv(t testing.TB) *env {
	t.Helper()
	return newEnvOf(t, streamBytes)
}

// newEnvOf makes an env whose stream has a size in bytes.
func newEnvOf(t testing.TB, room int64) *env {
	t.Helper()
	e := &env{server: natstest.New(t), room: room}
	e.queue, e.js = e.connect(t)
	require.Eventually(t, e.js.Conn().IsConnected, patience, time.Millisecond)
	require.NoError(t, e.queue.Declare(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	t.Cleanup(cancel)
	e.ctx = ctx
	return e
}

// connect opens a connection of its own, as another process would.
func (e *env) connect(t testing.TB) (*queue.Queue, jetstream.JetStream) {
	t.Helper()
	nc, err := queue.Connect(e.server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, err := queue.New(nc, queue.Config{Replicas: 1, MaxBytes: e.room})
	require.NoError(t, err)
	js, err := jetstream.New(nc.Conn)
	require.NoError(t, err)
	return q, js
}

// publish stores uploads in the stream.
func (e *env) publish(t *testing.T, messages ...queue.Message) {
	t.Helper()
	_, err := e.queue.Publish(e.ctx, messages)
	require.NoError(t, err)
}

// publishSent stores uploads of the model in the stream, and sets their arrivals to those of the stream.
func (e *env) publishSent(t *testing.T, uploads ...*sent) {
	t.Helper()
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	for _, u := range uploads {
		sequences, err := e.queue.Publish(e.ctx, []queue.Message{{HardwareID: u.unit, Team: u.team, Text: []byte(u.text(u.readings...))}})
		require.NoError(t, err)
		msg, err := stream.GetMsg(e.ctx, sequences[0])
		require.NoError(t, err)
		u.arrived, u.sequence = msg.Time.UTC().Truncate(time.Microsecond), msg.Sequence
	}
}

// start runs a worker. The function stop ends it as SIGTERM does, and waits for it.
func (e *env) start(t *testing.T, store Store, configure ...func(*Worker)) (w *Worker, stop func()) {
	t.Helper()
	q, _ := e.connect(t)
	w = New(Config{Queue: q, Store: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	for _, f := range configure {
		f(w)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return w, stop
}

// settle waits until every message of the stream is acknowledged.
func (e *env) settle(t *testing.T) {
	t.Helper()
	e.settleWithin(t, patience)
}

func (e *env) settleWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	last := e.stream(t).LastSeq
	require.Eventually(t, func() bool {
		consumer, err := e.js.Consumer(ctx, queue.StreamName, queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream >= last
	}, limit, 10*time.Millisecond)
}

// extendAckWait makes the queue wait for acknowledgements for longer than a test runs: a worker gets an upload again only
// because another one returned it.
func (e *env) extendAckWait(t *testing.T) {
	t.Helper()
	config := e.consumer(t).Config
	config.AckWait = time.Hour
	_, err := e.js.UpdateConsumer(e.ctx, queue.StreamName, config)
	require.NoError(t, err)
}

func (e *env) stream(t *testing.T) jetstream.StreamState {
	t.Helper()
	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	return stream.CachedInfo().State
}

func (e *env) consumer(t *testing.T) *jetstream.ConsumerInfo {
	t.Helper()
	consumer, err := e.js.Consumer(e.ctx, queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	return consumer.CachedInfo()
}
