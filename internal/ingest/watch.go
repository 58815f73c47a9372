package ingest

import (
	"context"
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	// watchEvery is how old the metrics of the queue are at most while it
	// answers: autoscalers look every 15 to 30 seconds.
	watchEvery = 5 * time.Second
	// purgeEvery bounds how long a stream that is full of stored uploads refuses.
	purgeEvery = 10 * time.Second
	// trimEvery bounds how far rejects grow past their size.
	trimEvery = time.Minute
)

// DefaultRejectLimits keep rejects from filling the database, as a device that
// sends nonsense could. A gibibyte is some million of them; their time is
// longer than the stream keeps what is stored, or a replay of it would make
// those anew that are gone.
var DefaultRejectLimits = roomsensor.RejectLimits{Keep: 30 * 24 * time.Hour, MaxBytes: 1 << 30}

// watch keeps the metrics of the queue.
func (w *Worker) watch(ctx context.Context) {
	every(ctx, watchEvery, func() {
		state, err := w.Queue.State(ctx)
		if err != nil {
			w.Log.Debug().Err(err).Msg("the queue does not tell its state")
			return
		}
		w.metrics.queue.note(&state, time.Now())
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

// trim keeps the rejects to their time and their size. Nothing goes silently:
// what does is logged and counted.
func (w *Worker) trim(ctx context.Context) {
	every(ctx, trimEvery, func() {
		trimmed, err := w.Store.TrimRejects(ctx, w.Rejects)
		w.metrics.trim(&trimmed)
		if trimmed.Aged > 0 {
			w.Log.Info().Int64("rejects", trimmed.Aged).Dur("keep", w.Rejects.Keep).Msg("rejects went, as their time is over")
		}
		if trimmed.Crowded > 0 {
			w.Log.Warn().Int64("rejects", trimmed.Crowded).Int64("max_bytes", w.Rejects.MaxBytes).
				Msg("the oldest rejects were dropped, as all of them take too much room; find what sends so many")
		}
		if err != nil {
			w.Log.Debug().Err(err).Msg("the rejects were not trimmed")
			return
		}
		w.metrics.keep(&trimmed, w.Rejects.MaxBytes)
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
