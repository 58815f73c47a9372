package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/tracing"
)

const (
	// prefetch is the number of messages that wait in a worker beside its batches: enough to fill the next batch, and few
	// to return when it stops.
	prefetch = 512
	// prefetchBytes bounds one request for messages. It must fit the largest message that the server accepts, or that
	// message would block the consumer.
	prefetchBytes = 2 << 20
	// pullExpiry and pullHeartbeat detect a request that the server forgot.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 5 * time.Second
)

const (
	// priorityLaneName is the name of a consumer that exists only during a backlog.
	priorityLaneName = "ingest-ahead"
	// priorityLaneIdle is the time after its last request for messages at which the server deletes that consumer.
	priorityLaneIdle = 30 * time.Second
)

// ErrNoMetadata is the error of a message that JetStream did not deliver. It cannot be acknowledged.
var ErrNoMetadata = errors.New("the message has no JetStream metadata")

// Delivery is an upload that the stream delivers to a worker.
type Delivery struct {
	Arrival    roomsensor.Arrival
	HardwareID string // from the subject; empty if that has none
	Text       []byte // the upload as it was sent; do not change it
	// Invalid says what is wrong with the subject or the headers, which a publisher set; empty if nothing is.
	Invalid string
	// Pending counts the messages that no worker had received yet when this one was delivered.
	Pending uint64
	// Deliveries counts the deliveries of this message to workers, this one included.
	Deliveries int
	// Trace is the span that published the upload; it is not valid if that was not recorded.
	Trace trace.SpanContext

	msg jetstream.Msg
}

// Ack tells the server that the upload is stored. The server delivers the message again if it misses the ack.
func (d *Delivery) Ack() error {
	if err := d.msg.Ack(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("acknowledging an upload: %w", err)
	}
	return nil
}

// Nak returns the upload to the queue, which delivers it again after a delay.
func (d *Delivery) Nak(delay time.Duration) error {
	nak := d.msg.Nak
	if delay > 0 {
		nak = func() error { return d.msg.NakWithDelay(delay) }
	}
	if err := nak(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("returning an upload: %w", err)
	}
	return nil
}

// Extend starts the AckWait of the delivery again. It ignores errors: the server then delivers the upload again, which
// changes nothing.
func (d *Delivery) Extend() { _ = d.msg.InProgress() }

// Consumer delivers uploads to one worker.
type Consumer struct{ messages jetstream.MessagesContext }

// Consume opens the consumer of the workers and creates a missing one. Any number of processes may consume at the same
// time; the server delivers each message to one of them.
func (q *Queue) Consume(ctx context.Context) (*Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := q.consumer(ctx)
	if err != nil {
		return nil, err
	}
	return q.open(consumer)
}

// ConsumePriorityLane opens a second consumer, which delivers the messages that arrived at or after an instant, past a
// backlog. All workers share its position, so a worker that opens it later continues where the first one is. It settles
// nothing: a delivery of the priority lane must not be acknowledged, and Consume delivers every message as well.
func (q *Queue) ConsumePriorityLane(ctx context.Context, since time.Time) (*Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := q.js.CreateConsumer(ctx, StreamName, jetstream.ConsumerConfig{
		Durable:           priorityLaneName,
		DeliverPolicy:     jetstream.DeliverByStartTimePolicy,
		OptStartTime:      &since,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: priorityLaneIdle,
		MemoryStorage:     true, // Its position need not survive a restart.
	})
	if errors.Is(err, jetstream.ErrConsumerExists) { // Another worker created it.
		consumer, err = q.js.Consumer(ctx, StreamName, priorityLaneName)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the consumer of the priority lane: %w", err)
	}
	return q.open(consumer)
}

func (q *Queue) open(consumer jetstream.Consumer) (*Consumer, error) {
	maxBytes := max(prefetchBytes, 2*int(q.nc.MaxPayload()))
	messages, err := consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(prefetch, maxBytes),
		jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat))
	if err != nil {
		return nil, fmt.Errorf("reading the consumer: %w", err)
	}
	return &Consumer{messages}, nil
}

// Next waits for the next upload. It returns the error of ctx if that ends first, ErrNoMetadata for a message to
// ignore, and any other error once the consumer is gone, as after a replay.
func (c *Consumer) Next(ctx context.Context) (*Delivery, error) {
	msg, err := c.messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("reading from the queue: %w", err)
	}
	return deliveryOf(msg) //nolint:contextcheck // The span of a message belongs to its sender.
}

// Drain stops fetching. Next returns the messages that were fetched already, then an error.
func (c *Consumer) Drain() { c.messages.Drain() }

// Stop closes the consumer and drops the messages that were fetched already.
func (c *Consumer) Stop() { c.messages.Stop() }

// deliveryOf reads the metadata of a message. The arrival is the time at which the stream stored it; a redelivery keeps
// it (decision 39).
func deliveryOf(msg jetstream.Msg) (*Delivery, error) {
	metadata, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("%w: subject %.100q: %w", ErrNoMetadata, msg.Subject(), err)
	}
	d := uploadOf(msg.Subject(), msg.Headers(), msg.Data(), metadata.Timestamp, metadata.Sequence.Stream)
	d.Pending, d.msg = metadata.NumPending, msg
	d.Deliveries = int(metadata.NumDelivered) //nolint:gosec // It is far below the maximum.
	return d, nil
}

// uploadOf returns the upload of a message that the stream stored at an instant.
func uploadOf(subject string, header nats.Header, text []byte, stored time.Time, sequence uint64) *Delivery {
	name, hardwareID, _ := strings.Cut(strings.TrimPrefix(subject, subjectPrefix), ".")
	d := &Delivery{
		Arrival:    roomsensor.Arrival{At: stored.UTC().Truncate(time.Microsecond), Sequence: sequence},
		HardwareID: hardwareID,
		Text:       text,
	}
	if parent := header.Get(tracing.Header); parent != "" {
		d.Trace = tracing.Parent(parent)
	}
	if name != NoTeam {
		team, err := uuid.Parse(name)
		d.Arrival.Team = &team
		if err != nil {
			d.Invalid = "The subject of the message has neither the id of a team nor " + NoTeam + " before the unit."
		}
		if hardwareID == noUnit {
			d.HardwareID = ""
		}
	}
	if id := header.Get(sourceHeader); id != "" {
		source, err := uuid.Parse(id)
		if err != nil || d.Arrival.Team == nil {
			d.Invalid = "The header " + sourceHeader + " of the message is not the id of a source, or the subject has no team."
			return d
		}
		d.Arrival.Source, d.Arrival.Precision = &source, header.Get(precisionHeader)
	}
	return d
}
