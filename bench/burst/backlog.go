package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
)

// progress is how far the workers are.
type progress struct {
	stored    uint64 // messages in the stream
	settled   uint64 // all of them up to here
	delivered uint64 // to workers, those that came again included
	pending   int    // in the hands of workers
	waiting   uint64
}

func (s *site) progress(ctx context.Context) (p progress, err error) {
	stream, err := s.js.Stream(ctx, queue.StreamName)
	if err != nil {
		return p, fmt.Errorf("looking at the stream: %w", err)
	}
	consumer, err := stream.Consumer(ctx, queue.ConsumerName)
	if err != nil {
		return p, fmt.Errorf("looking at the consumer: %w", err)
	}
	return progressOf(stream.CachedInfo(), consumer.CachedInfo()), nil
}

func progressOf(stream *jetstream.StreamInfo, consumer *jetstream.ConsumerInfo) progress {
	return progress{
		stored: stream.State.LastSeq, settled: consumer.AckFloor.Stream,
		delivered: consumer.Delivered.Consumer, pending: consumer.NumAckPending, waiting: consumer.NumPending,
	}
}

// handled is how many messages were settled, also beyond one that is not.
func (p *progress) handled() uint64 { return p.stored - p.waiting - uint64(p.pending) } //nolint:gosec // Not negative.

func (p *progress) drained() bool { return p.settled >= p.stored }

// drain waits until the workers have settled everything, and returns how long the longest time was in which they
// settled nothing.
func (s *site) drain(ctx context.Context) (last progress, stall time.Duration, err error) {
	moved, before := time.Now(), uint64(0)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if last, err = s.progress(ctx); err != nil {
			return last, stall, err
		}
		if handled := last.handled(); handled != before {
			stall = max(stall, time.Since(moved))
			moved, before = time.Now(), handled
		}
		if last.drained() {
			return last, stall, nil
		}
		select {
		case <-ctx.Done():
			return last, stall, fmt.Errorf("waiting for the workers: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// fill puts the load into the stream before any worker is there.
func (s *site) fill(ctx context.Context, l *load) error {
	uploads := l.interleaved()
	messages := make([]queue.Message, len(uploads))
	for i, u := range uploads {
		messages[i] = queue.Message{HardwareID: u.unit, Text: u.text}
	}
	_, err := s.queue.Publish(ctx, messages)
	return err
}
