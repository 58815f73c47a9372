package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A stream that is full refuses uploads, so what is stored in the tables goes
// earlier than it would by age when the stream is nearly full, down to a level
// that leaves room for a while.
const (
	nearlyFull = 0.9
	roomy      = 0.8
	// purgeTimeout bounds some twenty questions and the purge of many gigabytes.
	purgeTimeout = time.Minute
)

// Purge removes from the stream what all workers have settled and what is
// older than keep, or more where the stream is nearly full. What no worker has
// settled stays, however old it is and however full the stream. It tells how
// many messages went.
func (q *Queue) Purge(ctx context.Context, keep time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	stream, consumer, err := q.look(ctx)
	if err != nil {
		return 0, err
	}
	p := purge{stream, stream.CachedInfo().State, consumer.CachedInfo().AckFloor.Stream}
	upTo, err := p.byAge(ctx, time.Now().Add(-keep))
	if err != nil {
		return 0, err
	}
	upTo = max(upTo, p.bySize(stream.CachedInfo().Config.MaxBytes))
	if upTo <= p.state.FirstSeq {
		return 0, nil
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(upTo)); err != nil {
		return 0, fmt.Errorf("purging the stream: %w", err)
	}
	return upTo - p.state.FirstSeq, nil
}

// purge decides from where on messages stay: the sequences that it gives are
// at most one above the floor.
type purge struct {
	stream jetstream.Stream
	state  jetstream.StreamState
	floor  uint64 // everything up to it is settled
}

// byAge finds the first message that is young enough, by bisection: messages
// stand in the order of their time.
func (p *purge) byAge(ctx context.Context, oldest time.Time) (uint64, error) {
	if p.state.Msgs == 0 || !p.state.FirstTime.Before(oldest) {
		return 0, nil
	}
	from, to := p.state.FirstSeq, p.end()
	for from < to {
		middle := from + (to-from)/2
		msg, err := messageFrom(ctx, p.stream, middle)
		if err != nil {
			return 0, err
		}
		if msg != nil && msg.Time.Before(oldest) {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, nil
}

// bySize takes all messages to be of the same size; what it misjudges, the
// next purge sets right.
func (p *purge) bySize(most int64) uint64 {
	if most <= 0 || p.state.Msgs == 0 || float64(p.state.Bytes) < nearlyFull*float64(most) {
		return 0
	}
	excess := float64(p.state.Bytes) - roomy*float64(most)
	count := excess / float64(p.state.Bytes) * float64(p.state.LastSeq-p.state.FirstSeq+1)
	return min(p.state.FirstSeq+uint64(count)+1, p.end())
}

func (p *purge) end() uint64 { return max(p.state.FirstSeq, min(p.floor, p.state.LastSeq)+1) }
