package admin

import (
	"context"
	"time"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/ops"
)

// OrderedChunk is a chunk of readings that was rewritten in primary-key order, or the reason why it was not.
type OrderedChunk struct {
	Chunk      string  `json:"chunk"`
	RangeStart string  `json:"range_start"`
	RangeEnd   string  `json:"range_end"`
	Bytes      int64   `json:"bytes"` // before the rewrite
	Seconds    float64 `json:"seconds"`
	Ordered    bool    `json:"ordered"`
	Reason     *string `json:"reason"` // null if it was rewritten; otherwise why not, and what to do
}

// Maintain rewrites chunks whose range ended longer than settled ago in primary-key order, newest first, and tries most
// of them at most. Each rewrite may take as long as limit. The list also has the chunks that it skips.
func (o *Operator) Maintain(
	ctx context.Context, settled, limit time.Duration, most int,
) (List[OrderedChunk], error) {
	list := List[OrderedChunk]{Data: []OrderedChunk{}}
	chunks, err := o.store.ChunksToOrder(ctx, o.now().Add(-settled), limit)
	if err != nil {
		return list, o.explain(ctx, err)
	}
	for i := range chunks {
		if most == 0 {
			break
		}
		result, err := process.OrderChunk(ctx, o.store, &chunks[i], limit)
		if err != nil {
			return list, o.explain(ctx, err)
		}
		if result.Took > 0 {
			most--
		}
		list.Data = append(list.Data, viewChunk(&chunks[i], result, limit))
	}
	return list, nil
}

func viewChunk(c *ops.Chunk, result process.ChunkOrder, limit time.Duration) OrderedChunk {
	view := OrderedChunk{
		Chunk: c.Name, RangeStart: roomsensor.FormatTime(c.Range.From), RangeEnd: roomsensor.FormatTime(c.Range.To),
		Bytes: c.Bytes, Seconds: result.Took.Seconds(), Ordered: result.Deferral == "",
	}
	if result.Deferral != "" {
		view.Reason = new(result.Deferral.Explain(c, limit))
	}
	return view
}
