package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/roomsensor"
)

const (
	// prefetch is what waits in a worker beside the batches it works on: enough
	// to fill the next one, little to hand back at a stop.
	prefetch = 512
	// prefetchBytes bounds one request for messages. It must fit the largest
	// message that the server takes, or that message would stall the consumer.
	prefetchBytes = 2 << 20
	// pullExpiry and pullHeartbeat notice a request that the server forgot.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 5 * time.Second
)

// Messages opens the consumer, made where it is missing, for reading. Several
// processes may read it at once; each message goes to one of them.
func (q *Queue) Messages(ctx context.Context) (jetstream.MessagesContext, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := q.consumer(ctx)
	if err != nil {
		return nil, err
	}
	return q.read(consumer)
}

func (q *Queue) read(consumer jetstream.Consumer) (jetstream.MessagesContext, error) {
	most := max(prefetchBytes, 2*int(q.nc.MaxPayload()))
	messages, err := consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(prefetch, most),
		jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat))
	return messages, wrapped("reading the consumer", err)
}

// Delivery is what the queue says of a message.
type Delivery struct {
	Arrival    roomsensor.Arrival
	HardwareID string // of the subject
	// TeamUnclear says that the message names a team in a form that is no id.
	TeamUnclear bool
	Behind      uint64 // messages that nobody was given yet when this one was
}

// Describe reads what the queue says of a message: when the stream stored it,
// whichever delivery this is (decision 39), and for whom it came.
func Describe(msg jetstream.Msg) (Delivery, error) {
	metadata, err := msg.Metadata()
	if err != nil {
		return Delivery{}, fmt.Errorf("reading the metadata of a message: %w", err)
	}
	d := Delivery{
		Arrival: roomsensor.Arrival{
			At:       metadata.Timestamp.UTC().Truncate(time.Microsecond),
			Sequence: metadata.Sequence.Stream,
		},
		HardwareID: strings.TrimPrefix(msg.Subject(), subjectPrefix),
		Behind:     metadata.NumPending,
	}
	for _, text := range msg.Headers().Values(TeamHeader) {
		team, err := uuid.Parse(text)
		d.TeamUnclear = d.TeamUnclear || err != nil || d.Arrival.Team != nil
		d.Arrival.Team = &team
	}
	return d, nil
}
