package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
)

// Deferral is why a chunk of readings was not rewritten in primary-key order. It is a label of a metric.
type Deferral string

// The deferrals. The next check tries again after the first two.
const (
	ChunkInUse     Deferral = "in_use"
	RewriteRunning Deferral = "rewrite_running"
	ChunkTooLarge  Deferral = "too_large"
	RewriteTimeout Deferral = "timeout"
	ChunkPostponed Deferral = "postponed"
)

// Deferrals lists all of them.
var Deferrals = []Deferral{ChunkInUse, RewriteRunning, ChunkTooLarge, RewriteTimeout, ChunkPostponed}

// ChunkOrder is the outcome of rewriting one chunk of readings in primary-key order.
type ChunkOrder struct {
	Deferral Deferral // empty if the chunk was rewritten
	Took     time.Duration
}

// OrderChunk rewrites one chunk of readings in primary-key order, which may take as long as limit. It does not try if
// the chunk is too large for that, or postponed. It is not an error if the store cannot rewrite the chunk now: the
// outcome then has the reason.
func OrderChunk(ctx context.Context, s *store.Store, chunk *ops.Chunk, limit time.Duration) (ChunkOrder, error) {
	switch {
	case chunk.PostponedUntil != nil:
		return ChunkOrder{Deferral: ChunkPostponed}, nil
	case chunk.RewriteTime() > limit:
		return ChunkOrder{Deferral: ChunkTooLarge}, nil
	}
	began := time.Now()
	err := s.OrderChunk(ctx, chunk.Name, limit)
	result := ChunkOrder{Took: time.Since(began)}
	switch {
	case err == nil:
	case errors.Is(err, ops.ErrRewriteRunning):
		result.Deferral = RewriteRunning
	case errors.Is(err, ops.ErrChunkInUse):
		result.Deferral = ChunkInUse
	case errors.Is(err, ops.ErrRewriteTooLong):
		result.Deferral = RewriteTimeout
	default:
		return result, err
	}
	return result, nil
}

// Explain tells an operator why a chunk was not rewritten within limit, and what to do.
func (d Deferral) Explain(chunk *ops.Chunk, limit time.Duration) string {
	switch d {
	case ChunkInUse:
		return "Could not acquire the chunk lock before the timeout. Try again later."
	case RewriteRunning:
		return "Another process is rewriting a chunk. Try again later."
	case ChunkTooLarge:
		return fmt.Sprintf("The rewrite would take about %s, and the limit is %s. "+
			"Set a longer limit, or choose shorter chunks for new readings.", chunk.RewriteTime().Round(time.Second), limit)
	case RewriteTimeout:
		return fmt.Sprintf("Could not rewrite the chunk within %s. "+
			"The next attempt is in a day, or earlier with a longer limit.", limit)
	case ChunkPostponed:
		return fmt.Sprintf("An earlier rewrite took longer than the limit. "+
			"The next attempt is after %s, or earlier with a longer limit.", roomsensor.FormatTime(*chunk.PostponedUntil))
	}
	return ""
}
