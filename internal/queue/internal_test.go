package queue

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
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

// PublishWindow is publishWindow.
const PublishWindow = publishWindow

// heldStream delivers the confirmations of the messages of a team only once release is closed.
type heldStream struct {
	jetstream.JetStream
	team    uuid.UUID
	release <-chan struct{}
	sent    atomic.Int64
}

type heldFuture struct {
	jetstream.PubAckFuture
	release <-chan struct{}
}

func (f heldFuture) Ok() <-chan *jetstream.PubAck {
	<-f.release
	return f.PubAckFuture.Ok()
}

func (h *heldStream) PublishMsgAsync(m *nats.Msg, options ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	future, err := h.JetStream.PublishMsgAsync(m, options...)
	if err != nil || !strings.HasPrefix(m.Subject, subjectPrefix+h.team.String()+".") {
		return future, err
	}
	h.sent.Add(1)
	return heldFuture{future, h.release}, nil
}

// Hold holds the confirmations of the messages of a team until release is closed. It returns the number of its messages
// that were sent. There are no batches. Tests of package queue_test use it.
func (q *Queue) Hold(team uuid.UUID, release <-chan struct{}) (sent func() int64) {
	held := &heldStream{JetStream: q.js, team: team, release: release}
	q.js = held
	q.batches.Store(false)
	return held.sent.Load
}

// A user has a prefix of its own. A token is a secret and shows in no subject.
func TestInboxPrefix(t *testing.T) {
	t.Parallel()
	for servers, want := range map[string]string{
		"nats://host":                            "_INBOX",
		"tls://worker:secret@a:4222,tls://x:y@b": "_INBOX.worker",
		"nats://token@host":                      "_INBOX",
		"nats://many.parts:secret@host":          "_INBOX",
		"nats://%2A:secret@host":                 "_INBOX",
		"nats://:secret@host":                    "_INBOX",
	} {
		require.Equal(t, want, inboxPrefix(servers), servers)
	}
}

// FreeBacklogs is freeBacklogs.
func (q *Queue) FreeBacklogs(ctx context.Context) error { return q.freeBacklogs(ctx) }

// A backlog takes bounded memory, limits the number of its messages, and refuses nothing while the position of the
// workers is unknown.
func TestBacklogs(t *testing.T) {
	t.Parallel()
	b := backlogs{byTeam: map[uuid.UUID]*backlog{}}
	team, one := uuid.New(), amount{1, 1}
	const limit = 1000
	publish := func(sequence uint64) error {
		of, err := b.admit(team, one, limit)
		if err == nil {
			b.settle(team, of, one, one, sequence)
		}
		return err
	}
	for sequence := range uint64(2 * limit) {
		require.NoError(t, publish(sequence+1), "the position was never read")
	}
	require.Len(t, b.byTeam[team].steps, 1, "nothing was read between them")
	b.free(2*limit-1, 0)
	require.NoError(t, publish(2*limit), "no other team has a backlog")
	other := uuid.New()
	before, err := b.admit(other, one, limit)
	require.NoError(t, err)
	require.ErrorIs(t, publish(1), ErrBacklog)
	b.forget()
	require.Empty(t, b.byTeam)

	now, err := b.admit(other, one, limit)
	require.NoError(t, err)
	b.settle(other, before, one, amount{}, 0)
	require.Equal(t, one, b.byTeam[other].amount, "a call that began with another stream changes nothing")
	b.settle(other, now, one, amount{}, 0)
	require.Empty(t, b.byTeam)

	for sequence := range uint64(limit) {
		require.NoError(t, publish(sequence+1))
		b.free(0, 0)
	}
	require.Len(t, b.byTeam[team].steps, maxSteps)
	b.free(maxSteps-1, 0)
	require.Len(t, b.byTeam[team].steps, 1)
	require.Equal(t, amount{limit - maxSteps + 1, limit - maxSteps + 1}, b.byTeam[team].amount)

	b.settle(team, b.byTeam[team], amount{}, amount{0, aloneTimes * maxBacklogMessages}, limit+1)
	require.ErrorIs(t, publish(1), ErrBacklog, "the messages are too many")
	b.read = b.read.Add(-positionFor)
	require.NoError(t, publish(1), "the last position is too old")
}
