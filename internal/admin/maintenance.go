package admin

import (
	"context"
	"time"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// OrderedChunk is a chunk of readings that was rewritten in primary-key order, or the reason why it was not.
type OrderedChunk struct {
	Chunk      string  `json:"chunk"`
	RangeStart string  `json:"range_start"`
	RangeEnd   string  `json:"range_end"`
	Bytes      int64   `json:"bytes"` // before the rewrite
	Seconds    float64 `json:"seconds"`
	Ordered    bool    `json:"ordered"`
	Reason     *string `json:"reason"` // null if it was rewritten; otherwise try again later
}

// Maintain rewrites chunks whose range ended longer than settled ago in primary-key order, newest first, and at most
// limit of them.
func (o *Operator) Maintain(ctx context.Context, settled time.Duration, limit int) (List[OrderedChunk], error) {
	list := List[OrderedChunk]{Data: []OrderedChunk{}}
	chunks, err := o.store.ChunksToOrder(ctx, o.now().Add(-settled))
	if err != nil {
		return list, o.explain(ctx, err)
	}
	for i := range chunks[:min(limit, len(chunks))] {
		result, err := process.OrderChunk(ctx, o.store, &chunks[i])
		if err != nil {
			return list, o.explain(ctx, err)
		}
		list.Data = append(list.Data, viewChunk(&chunks[i], result))
	}
	return list, nil
}

func viewChunk(c *store.Chunk, result process.ChunkOrder) OrderedChunk {
	view := OrderedChunk{
		Chunk: c.Name, RangeStart: roomsensor.FormatTime(c.Range.From), RangeEnd: roomsensor.FormatTime(c.Range.To),
		Bytes: c.Bytes, Seconds: result.Took.Seconds(), Ordered: result.Ordered,
	}
	if !result.Ordered {
		view.Reason = &result.Reason
	}
	return view
}
