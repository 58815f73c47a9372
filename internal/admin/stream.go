package admin

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/worker"
)

// withQueue calls do with a connection to the stream, which it creates if it does not exist.
func withQueue(
	ctx context.Context, cfg config.Queue, stream config.Stream, do func(*queue.Queue) error,
) error {
	return connectQueue(cfg, stream, func(q *queue.Queue) error {
		if err := process.DeclareStream(ctx, q); err != nil {
			return err
		}
		return do(q)
	})
}

// connectQueue calls do with a connection to NATS.
func connectQueue(cfg config.Queue, stream config.Stream, do func(*queue.Queue) error) error {
	q, conn, err := process.ConnectQueue(cfg, stream, "roomsensor", zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(q)
}

// Receipt is the result of one line of uploads.
type Receipt = receiver.Receipt

// Upload publishes JSON Lines of uploads to the stream and passes a receipt for each line to receipt, in the order of
// the lines: stored, or why it was refused. A refused line does not stop the others, but makes the command fail at the
// end. The caller is a trusted publisher: no team restricts which units it may upload for.
func Upload(
	ctx context.Context, cfg config.Queue, stream config.Stream, in io.Reader, receipt func(Receipt) error,
) error {
	return withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		done := make(chan error, 1)
		go func() { done <- receiver.UploadLines(ctx, q, in, receipt) }()
		select {
		case err := <-done:
			return explainUpload(err)
		case <-ctx.Done(): // A read from a terminal does not end with ctx.
			return process.ErrInterrupted
		}
	})
}

func explainUpload(err error) error {
	switch {
	case errors.Is(err, receiver.ErrLinesRefused):
		return process.Refusef("Some lines were refused; their receipts say why. Correct these lines and upload them again.")
	case errors.Is(err, receiver.ErrQueueRefused):
		return process.Refusef("The queue is full or unavailable. Lines whose receipt has a stream_sequence are stored; "+
			"upload the others again: %v", err)
	}
	return err
}

// StreamSettings are the size and the copies of the stream.
type StreamSettings struct {
	Stream   string `json:"stream"`
	MaxBytes int64  `json:"max_bytes"` // above which the stream refuses uploads; -1 without a limit
	Replicas int    `json:"replicas"`
}

// UpdateStream raises the size and the copies of the stream to those of a configuration, and corrects settings that
// would lose uploads. It creates a missing stream, and lowers nothing.
func UpdateStream(ctx context.Context, cfg config.Queue, stream config.Stream) (settings StreamSettings, err error) {
	err = connectQueue(cfg, stream, func(q *queue.Queue) error {
		if err := q.Declare(ctx); err != nil {
			return process.ExplainQueue(ctx, err)
		}
		info, err := q.Inspect(ctx)
		settings = StreamSettings{queue.StreamName, info.MaxBytes, info.Replicas}
		return err
	})
	return settings, err
}

// StreamReplay is the state of the consumer after a replay of the stream.
type StreamReplay struct {
	Stream   string  `json:"stream"`
	Consumer string  `json:"consumer"`
	Since    *string `json:"since"`
	Waiting  uint64  `json:"waiting"` // messages not yet delivered to a worker
}

// ReplayStream makes the workers process the stream again: messages that arrived at since or later, or all if it is
// nil.
func ReplayStream(
	ctx context.Context, cfg config.Queue, stream config.Stream, since *time.Time,
) (replay StreamReplay, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		if err := q.Replay(ctx, since); err != nil {
			return err
		}
		state, err := q.State(ctx)
		replay = StreamReplay{queue.StreamName, queue.ConsumerName, formatTime(since), state.Waiting}
		return err
	})
	return replay, err
}

// StreamStatus is the state of the stream of uploads.
type StreamStatus struct {
	Stream       string           `json:"stream"`
	CreatedAt    string           `json:"created_at"`
	Recorded     *bool            `json:"recorded"` // false: the database records another stream, or none; null as parked
	Replicas     int              `json:"replicas"`
	Messages     uint64           `json:"messages"`
	Bytes        uint64           `json:"bytes"`
	MaxBytes     int64            `json:"max_bytes"` // above which the stream refuses uploads; -1 without a limit
	OldestAt     *string          `json:"oldest_at"` // arrival of the oldest message: how far back a replay can go
	NewestAt     *string          `json:"newest_at"`
	ReachSeconds *int64           `json:"reach_seconds"` // age of the oldest message
	KeepSeconds  int64            `json:"keep_seconds"`  // --stream-keep: how long stored uploads stay in the stream
	Parked       *int64           `json:"parked"`        // rejects of uploads that the database refused; null without it
	Consumers    []StreamConsumer `json:"consumers"`
}

// StreamConsumer is a consumer of the stream. That of the workers is ingest; ingest-ahead exists during a backlog.
type StreamConsumer struct {
	Name             string  `json:"name"`
	Waiting          uint64  `json:"waiting"`        // messages that no worker has received
	Unacknowledged   int     `json:"unacknowledged"` // messages that a worker has received and not settled
	Redelivered      int     `json:"redelivered"`    // those of them that were returned to the queue or are held
	OldestUnsettled  *string `json:"oldest_unsettled_at"`
	UnsettledSeconds *int64  `json:"oldest_unsettled_seconds"`
}

// StreamStatus returns the state of the stream, also while the database is unavailable. It creates and changes nothing.
func (o *Operator) StreamStatus(
	ctx context.Context, cfg config.Queue, stream config.Stream, keep config.Retention,
) (status StreamStatus, err error) {
	if err := keep.Validate(); err != nil {
		return status, err
	}
	err = connectQueue(cfg, stream, func(q *queue.Queue) error {
		info, err := q.Inspect(ctx)
		switch {
		case errors.Is(err, queue.ErrNoStream):
			return process.Refusef("NATS has no stream %s. roomsensor ingest creates it at its first start; "+
				"roomsensor stream confirm creates it after a loss.", queue.StreamName)
		case err != nil:
			return process.ExplainQueue(ctx, err)
		}
		status = viewStream(info, o.now())
		status.KeepSeconds = int64(time.Duration(keep.StreamKeep).Seconds())
		return o.addRecord(ctx, &status, info.Created)
	})
	return status, err
}

// addRecord adds what the database knows about a stream. While the database is unavailable, it adds nothing: just then
// an operator needs to know how much the stream still takes.
func (o *Operator) addRecord(ctx context.Context, status *StreamStatus, created time.Time) error {
	recorded, err := o.store.StreamCreated(ctx, queue.StreamName)
	var parked int64
	if err == nil {
		parked, err = o.store.RejectCount(ctx, roomsensor.ReasonNotStorable)
	}
	if err == nil {
		status.Recorded, status.Parked = new(recorded.Equal(created)), &parked
		return nil
	}
	explained := o.explain(ctx, err)
	if _, unavailable := errors.AsType[process.RefusedError](explained); unavailable && ctx.Err() == nil {
		return nil
	}
	return explained
}

func viewStream(info queue.Info, now time.Time) StreamStatus {
	view := StreamStatus{
		Stream: queue.StreamName, CreatedAt: roomsensor.FormatTime(info.Created), Replicas: info.Replicas,
		Messages: info.Messages, Bytes: info.Bytes, MaxBytes: info.MaxBytes, Consumers: []StreamConsumer{},
	}
	view.OldestAt, view.ReachSeconds = formatAge(info.Oldest, now)
	view.NewestAt, _ = formatAge(info.Newest, now)
	for i := range info.Consumers {
		c := &info.Consumers[i]
		consumer := StreamConsumer{
			Name: c.Name, Waiting: c.Waiting, Unacknowledged: c.Unacknowledged, Redelivered: c.Redelivered,
		}
		consumer.OldestUnsettled, consumer.UnsettledSeconds = formatAge(c.Oldest, now)
		view.Consumers = append(view.Consumers, consumer)
	}
	return view
}

// formatAge returns a time and its age; both are nil for the zero time.
func formatAge(at, now time.Time) (formatted *string, seconds *int64) {
	if at.IsZero() {
		return nil, nil
	}
	return new(roomsensor.FormatTime(at)), new(int64(now.Sub(at).Seconds()))
}

// ConfirmedStream is the stream that the database records.
type ConfirmedStream struct {
	Stream    string `json:"stream"`
	CreatedAt string `json:"created_at"`
}

// ConfirmStream records the stream in place of the one before, which was lost. It creates a missing one.
func (o *Operator) ConfirmStream(
	ctx context.Context, cfg config.Queue, stream config.Stream,
) (confirmed ConfirmedStream, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		if err := q.Check(ctx); err != nil {
			return process.Interrupted(ctx, err)
		}
		confirmed = ConfirmedStream{queue.StreamName, roomsensor.FormatTime(q.Created())}
		return o.explain(ctx, o.store.ConfirmStream(ctx, queue.StreamName, q.Created()))
	})
	return confirmed, err
}

// SkipUpload makes a message of the stream a reject and removes it from the stream. Workers that run do not receive it
// again.
func (o *Operator) SkipUpload(
	ctx context.Context, cfg config.Queue, stream config.Stream, sequence uint64,
) (skipped Reject, err error) {
	err = withQueue(ctx, cfg, stream, func(q *queue.Queue) error {
		message, err := q.Unsettled(ctx, sequence)
		switch {
		case errors.Is(err, queue.ErrSettled):
			return process.Refusef("The stream has no message %d, or the workers have settled it: nothing holds them up there. "+
				"Their log names the stream_sequence of uploads that the database refuses.", sequence)
		case err != nil:
			return process.Interrupted(ctx, err)
		}
		reject, err := o.store.SkipUpload(ctx, worker.Skipped(message))
		if err != nil {
			return o.explain(ctx, err)
		}
		skipped = viewReject(&reject)
		return q.Remove(ctx, sequence)
	})
	return skipped, err
}
