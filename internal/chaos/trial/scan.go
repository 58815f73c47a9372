package trial

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/queue"
)

// scan tells the ledger what the stream holds.
func (s *Service) scan(ctx context.Context, l *ledger.Ledger) error {
	stream, err := s.JS.Stream(ctx, queue.StreamName)
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	left := stream.CachedInfo().State.Msgs
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	defer messages.Stop()
	for ; left > 0; left-- {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
		if err := arrived(l, msg); err != nil {
			return err
		}
	}
	return nil
}

func arrived(l *ledger.Ledger, msg jetstream.Msg) error {
	about, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	id, ok := ledger.IDOf(msg.Data())
	if !ok || !l.Arrived(id, ledger.Arrival{Sequence: about.Sequence.Stream, At: about.Timestamp}) {
		return fmt.Errorf("reading the stream: message %d is of no upload of the ledger", about.Sequence.Stream)
	}
	return nil
}
