package process

import (
	"context"
	"errors"
	"time"

	"roomsensor/internal/store"
)

// ChunkOrder is the outcome of rewriting one chunk of readings in primary-key order.
type ChunkOrder struct {
	Ordered bool
	Reason  string // a sentence that says why the chunk was not rewritten; try again later
	Took    time.Duration
}

// OrderChunk rewrites one chunk of readings in primary-key order. It is not an error if the store cannot rewrite the
// chunk now: the outcome then has the reason.
func OrderChunk(ctx context.Context, s *store.Store, chunk *store.Chunk) (ChunkOrder, error) {
	began := time.Now()
	err := s.OrderChunk(ctx, chunk.Name)
	result := ChunkOrder{Took: time.Since(began)}
	switch {
	case err == nil:
		result.Ordered = true
	case errors.Is(err, store.ErrRewriteRunning):
		result.Reason = "Another process is rewriting a chunk."
	case errors.Is(err, store.ErrChunkInUse):
		result.Reason = "Could not acquire the chunk lock before the timeout."
	case errors.Is(err, store.ErrRewriteTooLong):
		result.Reason = "Could not rewrite the chunk before the timeout."
	default:
		return result, err
	}
	return result, nil
}
