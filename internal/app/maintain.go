package app

import (
	"context"
	"errors"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// OrderedChunk is a chunk of readings that was put in the order of its key, or
// why it was not.
type OrderedChunk struct {
	Chunk      string  `json:"chunk"`
	RangeStart string  `json:"range_start"`
	RangeEnd   string  `json:"range_end"`
	Bytes      int64   `json:"bytes"` // before
	Seconds    float64 `json:"seconds"`
	Ordered    bool    `json:"ordered"`
	Reason     *string `json:"reason"` // why it was not; try again later
}

// Maintain puts the chunks that ended a time ago in the order of their key, the
// newest first, and at most so many.
func (o *Operator) Maintain(ctx context.Context, settled time.Duration, most int) (List[OrderedChunk], error) {
	list := List[OrderedChunk]{Data: []OrderedChunk{}}
	chunks, err := o.store.ChunksToOrder(ctx, o.now().Add(-settled))
	if err != nil {
		return list, o.explain(ctx, err)
	}
	for _, chunk := range chunks[:min(most, len(chunks))] {
		done, err := orderChunk(ctx, o.store, chunk)
		if err != nil {
			return list, o.explain(ctx, err)
		}
		list.Data = append(list.Data, done)
	}
	return list, nil
}

// orderChunk puts one chunk in order. That somebody else is at it, or uses the
// chunk, is no error.
func orderChunk(ctx context.Context, s *store.Store, chunk roomsensor.Chunk) (OrderedChunk, error) {
	done := OrderedChunk{
		Chunk: chunk.Name, RangeStart: roomsensor.FormatTime(chunk.Range.From),
		RangeEnd: roomsensor.FormatTime(chunk.Range.To), Bytes: chunk.Bytes,
	}
	began := time.Now()
	var err error
	done.Ordered, err = s.OrderChunk(ctx, chunk.Name)
	done.Seconds = time.Since(began).Seconds()
	var busy *roomsensor.Error
	switch {
	case errors.As(err, &busy) && s.Ping(ctx) == nil:
		done.Reason = new("The chunk is in use, and its lock was not had in time.")
		return done, nil
	case err == nil && !done.Ordered:
		done.Reason = new("Another process is putting a chunk in order.")
	}
	return done, err
}
