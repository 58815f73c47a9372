// Package queue is the stream of uploads and its one consumer: how they are
// declared, filled, read, replayed, looked at and purged. Its names are what
// devices and other tools rely on.
package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/roomsensor"
)

// The names that others rely on.
const (
	StreamName   = "UPLOADS"
	ConsumerName = "ingest"
	// TeamHeader is of a message that came with a credential: the id of its
	// team. A message without it came from trusted ground.
	TeamHeader = "Roomsensor-Team"

	subjectPrefix = "uploads."
	subjects      = subjectPrefix + "*"
)

const (
	// DefaultMaxBytes holds some ten days of 10,000 devices.
	DefaultMaxBytes = 8 << 30
	// DefaultKeep is how long the stream keeps what is stored in the tables,
	// for a replay after a restore.
	DefaultKeep = 7 * 24 * time.Hour
)

// AckWait is when a message that a worker neither settled nor prolonged goes to
// another one. It is the most that a batch may take to commit, three times
// over, and what a crashed worker's messages wait at worst.
const AckWait = 60 * time.Second

const (
	// maxAckPending bounds what all workers together hold, with what they gave
	// back for later: four at the cap of the smallest uploads. More than four
	// share it, and are not starved: it is far above what commits in a second.
	maxAckPending = 50_000
	// requestTimeout bounds a few questions to the queue: one that went to a
	// server that died has no answer.
	requestTimeout = 5 * time.Second
	// ackTimeout is how long a publisher waits for the stream, which syncs
	// every message to disk; a busy disk takes a second.
	ackTimeout = 10 * time.Second
	// maxUnacknowledged bounds what a process has published and does not know
	// to be stored. Above some thousands nothing is gained.
	maxUnacknowledged = 4096
)

// Config is what an installation may choose.
type Config struct {
	Replicas int   // 1, or 3 on a cluster
	MaxBytes int64 // of the stream
}

// Queue is the stream of uploads.
type Queue struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	config Config
}

// New makes a queue on a connection, which need not be established yet.
func New(nc *nats.Conn, config Config) (*Queue, error) {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout),
		jetstream.WithPublishAsyncMaxPending(maxUnacknowledged), jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	return &Queue{nc: nc, js: js, config: config}, nil
}

// Check reports whether the stream answers, and creates it where it is
// missing: a queue that lost its disk is made anew.
func (q *Queue) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := q.stream(ctx)
	return q.because(err)
}

// because adds to an error why there is no connection, where the client knows: that the server refuses the user, say.
func (q *Queue) because(err error) error {
	if last := q.nc.LastError(); err != nil && last != nil && !q.nc.IsConnected() {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// Flush waits until the server has what was sent, such as acknowledgements.
func (q *Queue) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) // The client insists on a deadline.
	defer cancel()
	if err := q.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flushing to the queue: %w", err)
	}
	return nil
}

// Fits reports whether the server takes the largest upload. Its limit is known
// once it is connected.
func (q *Queue) Fits() bool {
	const headers = 1 << 10
	return q.nc.MaxPayload() >= roomsensor.MaxUploadBytes+headers
}
