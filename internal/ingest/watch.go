package ingest

import (
	"context"
	"time"
)

const (
	// watchEvery is how old the metrics of the queue may be: autoscalers look
	// every 15 to 30 seconds.
	watchEvery = 5 * time.Second
	// purgeEvery bounds how long a stream that is full of stored uploads refuses.
	purgeEvery = 10 * time.Second
	// trimEvery and maxRejects keep rejects from filling the database, as a
	// device that sends nonsense could. A gibibyte is some million of them,
	// which outlast what the stream keeps.
	trimEvery  = time.Minute
	maxRejects = 1 << 30 // bytes
)

// watch keeps the metrics of the queue.
func (w *Worker) watch(ctx context.Context) {
	every(ctx, watchEvery, func() {
		state, err := w.Queue.State(ctx)
		if err != nil {
			w.Log.Debug().Err(err).Msg("the queue does not tell its state")
			return
		}
		w.metrics.watch(&state, time.Now())
	})
}

// purge keeps the stream from growing past what its keeping is for. Every
// worker does it; who comes second finds nothing to do.
func (w *Worker) purge(ctx context.Context) {
	every(ctx, purgeEvery, func() {
		purged, err := w.Queue.Purge(ctx, w.Keep)
		if err != nil {
			w.Log.Debug().Err(err).Msg("the stream was not purged")
			return
		}
		if purged > 0 {
			w.metrics.purged.Add(float64(purged))
			w.Log.Info().Uint64("messages", purged).Msg("stored uploads left the stream")
		}
	})
}

// trim keeps the rejects to their size. Nothing goes silently: what does is
// logged and counted.
func (w *Worker) trim(ctx context.Context) {
	every(ctx, trimEvery, func() {
		dropped, err := w.Store.TrimRejects(ctx, maxRejects)
		if err != nil {
			w.Log.Debug().Err(err).Msg("the rejects were not trimmed")
			return
		}
		if dropped > 0 {
			w.metrics.dropped.Add(float64(dropped))
			w.Log.Warn().Int64("rejects", dropped).Int("most_bytes", maxRejects).
				Msg("the oldest rejects were dropped, as all of them take too much room; find what sends so many")
		}
	})
}

// every calls do at once and then at an interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
