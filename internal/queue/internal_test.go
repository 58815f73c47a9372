package queue

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// failingCreate is a server that fails to create consumers at first.
type failingCreate struct {
	jetstream.JetStream
	failures int
}

func (f *failingCreate) CreateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if f.failures > 0 {
		f.failures--
		return nil, jetstream.ErrConsumerCreate
	}
	return f.JetStream.CreateConsumer(ctx, stream, config)
}

// FailCreateConsumer makes the next attempts to create a consumer fail. Tests of package queue_test use it.
func (q *Queue) FailCreateConsumer(failures int) { q.js = &failingCreate{q.js, failures} }

// hookedStream calls before when the stream is read.
type hookedStream struct {
	jetstream.JetStream
	before func()
}

func (h *hookedStream) Stream(ctx context.Context, stream string) (jetstream.Stream, error) {
	h.before()
	return h.JetStream.Stream(ctx, stream)
}

// BeforeStream calls before whenever the queue reads the stream. Tests of package queue_test use it.
func (q *Queue) BeforeStream(before func()) { q.js = &hookedStream{q.js, before} }
