package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
)

// Consumer asks for the state of the workers' consumer.
func (s *Service) Consumer(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	consumer, err := s.JS.Consumer(ctx, queue.StreamName, queue.ConsumerName)
	if err != nil {
		return nil, fmt.Errorf("asking for the consumer: %w", err)
	}
	return consumer.CachedInfo(), nil
}

// narrowPatience is for a queue that comes back on a busy machine.
const narrowPatience = time.Minute

// Narrow makes the queue wait for workers no longer than AckWait. Whatever declares the consumer again widens it.
func (s *Service) Narrow(ctx context.Context) error {
	if s.AckWait == 0 {
		return nil
	}
	var failed error
	for deadline := time.Now().Add(narrowPatience); time.Now().Before(deadline); {
		if failed = s.narrowOnce(ctx); failed == nil {
			return nil
		}
		if err := Pause(ctx, reconnectWait); err != nil {
			return errors.Join(err, failed)
		}
	}
	return fmt.Errorf("narrowing the consumer: %w", failed)
}

func (s *Service) narrowOnce(ctx context.Context) error {
	info, err := s.Consumer(ctx)
	if err != nil {
		return err
	}
	config := info.Config
	config.AckWait = s.AckWait
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err = s.JS.UpdateConsumer(ctx, queue.StreamName, config)
	return err //nolint:wrapcheck // By Narrow.
}
