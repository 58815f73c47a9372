package queue

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrStreamLost is the error of a stream that disappeared or was replaced by another one. Uploads that were in it and
// not yet stored are lost.
var ErrStreamLost = errors.New("the stream of uploads disappeared, or another one took its place")

// ErrSettings is the error of a stream or a consumer with settings that would lose uploads. Its text says what to do.
var ErrSettings = errors.New("unsafe settings in NATS")

// stream returns the stream. A missing one is an ErrStreamLost if this process has used one, else an ErrNoStream.
func (q *Queue) stream(ctx context.Context) (jetstream.Stream, error) {
	known := q.end.Load() // Before the request: confirmations may overtake its answer.
	stream, err := q.js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if q.known.Load() != nil {
			q.lost.Store(true)
			return nil, ErrStreamLost
		}
		return nil, ErrNoStream
	}
	if err != nil {
		return nil, q.withCause(fmt.Errorf("finding the stream: %w", err))
	}
	return stream, q.identify(stream, known)
}

// identify compares the stream with the one that this process knows, and its end with a sequence that it had. The first
// stream becomes known.
func (q *Queue) identify(stream jetstream.Stream, had uint64) error {
	created := stream.CachedInfo().Created.UTC().Truncate(time.Microsecond)
	q.known.CompareAndSwap(nil, &created)
	q.lost.Store(!q.known.Load().Equal(created))
	q.maxBytes.Store(stream.CachedInfo().Config.MaxBytes)
	q.batches.Store(stream.CachedInfo().Config.AllowAtomicPublish)
	if q.lost.Load() {
		return ErrStreamLost
	}
	if last := stream.CachedInfo().State.LastSeq; last >= had {
		q.observe(last)
	} else if q.end.CompareAndSwap(had, last) { // Another check may have seen it first.
		q.cut.Add(had - last)
	}
	return nil
}

// consumer returns the consumer of the workers. It creates a missing one.
func (q *Queue) consumer(ctx context.Context) (jetstream.Consumer, error) {
	if _, err := q.stream(ctx); err != nil {
		return nil, err
	}
	consumer, err := q.js.Consumer(ctx, StreamName, ConsumerName)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if err = q.declareConsumer(ctx); err == nil {
			consumer, err = q.js.Consumer(ctx, StreamName, ConsumerName)
		}
	}
	if err != nil {
		return nil, q.withCause(fmt.Errorf("finding the consumer: %w", err))
	}
	return consumer, checkConsumer(&consumer.CachedInfo().Config)
}

// checkConsumer refuses settings with which messages would never be stored, and which the server cannot update.
func checkConsumer(have *jetstream.ConsumerConfig) error {
	if have.FilterSubject != "" || len(have.FilterSubjects) > 0 || have.AckPolicy != jetstream.AckExplicitPolicy {
		return fmt.Errorf("%w: the consumer %s filters subjects or does not wait for each acknowledgement: delete it, "+
			"and a worker creates it again and stores all of the stream", ErrSettings, ConsumerName)
	}
	return nil
}

// checkPosition refuses a consumer beyond the end of its stream.
func checkPosition(stream *jetstream.StreamInfo, consumer *jetstream.ConsumerInfo) error {
	if at, end := consumer.Delivered.Stream, stream.State.LastSeq; at > end {
		return fmt.Errorf("%w: workers get no new uploads: the consumer %s is at message %d, and the stream lost messages "+
			"and ends at %d: run roomsensor stream replay", ErrSettings, ConsumerName, at, end)
	}
	return nil
}

// checkStream refuses settings with which the stream could drop messages, or store none.
func checkStream(have *jetstream.StreamConfig) error {
	if err := checkKind(have); err != nil {
		return err
	}
	if have.Discard != jetstream.DiscardNew || have.MaxAge > 0 || have.MaxMsgsPerSubject > 0 ||
		!slices.Contains(have.Subjects, subjects) {
		return fmt.Errorf("%w: the stream %s drops uploads by their age or number, or does not store %s: "+
			"run roomsensor stream update", ErrSettings, StreamName, subjects)
	}
	return nil
}

// checkKind refuses settings with which confirmed messages could be lost, and which the server cannot update.
func checkKind(have *jetstream.StreamConfig) error {
	if have.Storage != jetstream.FileStorage || have.Retention != jetstream.LimitsPolicy {
		return fmt.Errorf("%w: the stream %s exists with another kind of storage or retention: delete it and start again, "+
			"it must be of file storage and keep messages by its limits", ErrSettings, StreamName)
	}
	if have.PersistMode != jetstream.DefaultPersistMode || have.NoAck {
		return fmt.Errorf("%w: the stream %s confirms messages before they are on disk, or never: "+
			"set its persistence mode to default and its acknowledgements on", ErrSettings, StreamName)
	}
	return nil
}

// Declare creates the stream and the consumer, or corrects the configuration of existing ones. It never lowers a limit
// that an operator raised. It needs the right to change the stream, which the processes do not have.
func (q *Queue) Declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := q.declareStream(ctx); err != nil {
		return q.withCause(err)
	}
	return q.withCause(q.declareConsumer(ctx))
}

// DeclareMissing creates the stream and the consumer unless they exist. Unlike Declare, it changes nothing that exists:
// a command may not have the settings of the processes, and a process may not change them. Any number of processes may
// call it at the same time.
func (q *Queue) DeclareMissing(ctx context.Context) error {
	if err := q.DeclareMissingStream(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := q.consumer(ctx)
	return q.withCause(err)
}

// DeclareMissingStream is Check, but creates a missing stream, unless this process has used one.
func (q *Queue) DeclareMissingStream(ctx context.Context) error {
	err := q.Check(ctx)
	if !errors.Is(err, ErrNoStream) {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = q.js.CreateStream(bounded, q.wanted())
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // Another process created it.
		return q.withCause(fmt.Errorf("creating the stream: %w", err))
	}
	return q.Check(ctx)
}

// wanted returns the configuration of a new stream.
func (q *Queue) wanted() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:      StreamName,
		Subjects:  []string{subjects},
		Storage:   jetstream.FileStorage,
		Retention: jetstream.LimitsPolicy,
		Discard:   jetstream.DiscardNew, // A full stream refuses new messages and drops no old ones.
		MaxBytes:  q.config.MaxBytes,
		Replicas:  q.config.Replicas,

		AllowAtomicPublish: true, // See batcher.
	}
}

func (q *Queue) declareStream(ctx context.Context) (jetstream.Stream, error) {
	want := q.wanted()
	stream, err := q.js.CreateStream(ctx, want)
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return stream, wrapped("creating the stream", err)
	}
	if stream, err = q.js.Stream(ctx, StreamName); err != nil {
		return nil, fmt.Errorf("reading the stream: %w", err)
	}
	have := stream.CachedInfo().Config
	if err := checkKind(&have); err != nil {
		return nil, err
	}
	next := corrected(have, want)
	if reflect.DeepEqual(next, have) {
		return stream, nil
	}
	stream, err = q.js.UpdateStream(ctx, next)
	return stream, wrapped("updating the stream", err)
}

// corrected returns the configuration that an existing stream must get: it drops nothing and is at least as large as
// wanted. A limit that is not positive means unbounded.
func corrected(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	next := have
	next.Discard = want.Discard
	next.MaxAge = 0             // An age limit would drop uploads that no worker has seen.
	next.MaxMsgsPerSubject = -1 // This limit would drop them too, in spite of Discard.
	if have.MaxBytes > 0 {
		next.MaxBytes = max(have.MaxBytes, want.MaxBytes)
	}
	next.Replicas = max(have.Replicas, want.Replicas)
	next.AllowAtomicPublish = want.AllowAtomicPublish
	if !slices.Contains(have.Subjects, subjects) {
		next.Subjects = append(slices.Clone(have.Subjects), subjects)
	}
	return next
}

func (q *Queue) declareConsumer(ctx context.Context) error {
	want := jetstream.ConsumerConfig{
		Durable:       ConsumerName,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       AckWait,
		MaxDeliver:    -1, // With a limit, the server would stop delivering a message without a notice.
		MaxAckPending: maxAckPending,
	}
	_, err := q.js.CreateConsumer(ctx, StreamName, want)
	if !errors.Is(err, jetstream.ErrConsumerExists) {
		return wrapped("creating the consumer", err)
	}
	consumer, err := q.js.Consumer(ctx, StreamName, ConsumerName)
	if err != nil {
		return fmt.Errorf("reading the consumer: %w", err)
	}
	have := consumer.CachedInfo().Config
	if err := checkConsumer(&have); err != nil {
		return err
	}
	next := have // It keeps the start of a replay.
	next.AckWait = max(have.AckWait, want.AckWait)
	if have.MaxAckPending > 0 {
		next.MaxAckPending = max(have.MaxAckPending, want.MaxAckPending)
	}
	next.MaxDeliver, next.BackOff = want.MaxDeliver, nil
	if reflect.DeepEqual(next, have) {
		return nil
	}
	_, err = q.js.UpdateConsumer(ctx, StreamName, next)
	return wrapped("updating the consumer", err)
}

// wrapped adds to an error what was being done; nil stays nil.
func wrapped(doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
