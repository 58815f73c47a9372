package app

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/ops"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// connectQueue prepares the connection to NATS; it does not wait for it. Its
// only error is a URL that the client does not take.
func connectQueue(
	cfg config.Queue, stream config.Stream, name string, log zerolog.Logger,
) (*queue.Queue, *nats.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	if err := stream.Validate(); err != nil {
		return nil, nil, err
	}
	conn, err := queue.Connect(cfg.NATSURL, name, log)
	if err != nil {
		return nil, nil, cfg.Malformed()
	}
	q, err := queue.New(conn, queue.Config{Replicas: stream.StreamReplicas, MaxBytes: stream.MaxBytes()})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return q, conn, nil
}

// needQueue makes a process wait for the stream and lose its readiness with it.
func needQueue(health *ops.Health, q *queue.Queue) {
	health.Need("queue", func(ctx context.Context) error {
		err := q.Check(ctx)
		if errors.Is(err, nats.ErrAuthorization) {
			return &ops.UnavailableError{Reason: "refuses the user or password in --nats-url (NATS_URL)", Cause: err}
		}
		if err != nil {
			return &ops.UnavailableError{Reason: "does not answer", Cause: err}
		}
		if !q.Fits() {
			return &ops.UnavailableError{Reason: "takes too small messages: set max_payload of NATS to 1MB or more"}
		}
		return nil
	})
}

// queueTimeout is how long a command waits for NATS.
const queueTimeout = 10 * time.Second

// withQueue runs an operator's command on the stream, which is made where it
// is missing.
func withQueue(
	ctx context.Context, cfg config.Queue, stream config.Stream, do func(context.Context, *queue.Queue) error,
) error {
	q, conn, err := connectQueue(cfg, stream, "roomsensor", zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := declare(ctx, q); err != nil {
		return err
	}
	return do(ctx, q)
}

func declare(ctx context.Context, q *queue.Queue) error {
	waiting, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	err := q.Declare(waiting)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrNoServers):
		return refusef("NATS does not answer. Check that it runs, that it has JetStream "+
			"and that --nats-url (NATS_URL) is right: %v", err)
	case err != nil:
		return err
	case !q.Fits():
		return roomsensor.RefusedError("NATS takes too small messages. Set its max_payload to 1MB or more.")
	}
	return nil
}

// StreamReplay says what a replay of the stream gave back to the workers.
type StreamReplay struct {
	Stream   string  `json:"stream"`
	Consumer string  `json:"consumer"`
	Since    *string `json:"since"`
	Waiting  uint64  `json:"waiting"` // messages that no worker has taken yet
}

// ReplayStream gives the stream to the workers again, from an instant or, for
// nil, as a whole.
func ReplayStream(
	ctx context.Context, cfg config.Queue, stream config.Stream, since *time.Time,
) (replay StreamReplay, err error) {
	err = withQueue(ctx, cfg, stream, func(ctx context.Context, q *queue.Queue) error {
		if err := q.Replay(ctx, since); err != nil {
			return err
		}
		state, err := q.State(ctx)
		replay = StreamReplay{queue.StreamName, queue.ConsumerName, formatted(since), state.Waiting}
		return err
	})
	return replay, err
}
