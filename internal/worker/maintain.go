package worker

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// watchEvery is the interval at which a worker reads the state of the queue: autoscalers read the metrics every 15 to
	// 30 seconds.
	watchEvery = 5 * time.Second
	// purgeEvery bounds how much arrives between two purges of a stream that is nearly full of stored uploads. It costs
	// two requests to NATS.
	purgeEvery = time.Second
	// trimEvery bounds how far the rejects grow beyond their size limits.
	trimEvery = 10 * time.Second
	// feedPurgeEvery bounds how many rows more than needed the change feed has.
	feedPurgeEvery = time.Minute
)

// DefaultRejectLimits keep rejects from filling the database, as a device that sends invalid data could. A gibibyte
// holds a few million of them. Keep is longer than the stream keeps stored uploads, or a replay of the stream would
// create rejects again that have expired.
var DefaultRejectLimits = roomsensor.RejectLimits{Keep: 30 * 24 * time.Hour, MaxBytes: 1 << 30, TeamMaxBytes: 1 << 27}

// watchQueue updates the metrics of the queue until ctx ends.
func (w *Worker) watchQueue(ctx context.Context) {
	retry.Every(ctx, watchEvery, func(ctx context.Context) {
		state, err := w.Queue.State(ctx)
		if err != nil {
			w.Log.Debug().Err(err).Msg("could not read the state of the queue")
			return
		}
		w.metrics.queue.set(&state, time.Now())
	})
}

// purgeStream deletes stored uploads from the stream until ctx ends. Every worker does it, and only the first one finds
// messages to delete.
func (w *Worker) purgeStream(ctx context.Context) {
	retry.Every(ctx, purgeEvery, func(ctx context.Context) {
		purged, err := w.Queue.Purge(ctx, w.Keep, w.streamShares)
		w.metrics.purged.Add(float64(purged.Messages + purged.Early))
		w.metrics.purgedEarly.Add(float64(purged.Early))
		if purged.Messages > 0 {
			w.Log.Info().Uint64("messages", purged.Messages).Msg("purged stored uploads from the stream")
		}
		if purged.Early > 0 {
			w.Log.Warn().Uint64("messages", purged.Early).Strs("team_ids", namesOf(purged.Before)).
				Msg("the stream was nearly full: purged the oldest stored uploads of the teams with the most before STREAM_KEEP")
		}
		if err == nil && purged.Messages+purged.Early > 0 {
			err = w.Store.DeleteStreamShares(ctx, purged.First, purged.Before)
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("could not purge stored uploads from the stream, trying again later")
		}
	})
}

// namesOf lists the teams in a map, for the log.
func namesOf(before map[uuid.UUID]uint64) (names []string) {
	for team := range before {
		names = append(names, team.String())
	}
	slices.Sort(names)
	return names
}

// trimRejects deletes rejects beyond the limits of age and size until ctx ends. Every deletion is logged and counted.
func (w *Worker) trimRejects(ctx context.Context) {
	retry.Every(ctx, trimEvery, func(ctx context.Context) {
		trimmed, err := w.Store.TrimRejects(ctx, w.Rejects)
		w.metrics.countTrimmed(&trimmed)
		if trimmed.Aged > 0 {
			w.Log.Info().Int64("rejects", trimmed.Aged).Str("keep", w.Rejects.Keep.String()).Msg("deleted expired rejects")
		}
		if trimmed.TeamEvicted > 0 {
			w.Log.Warn().Int64("rejects", trimmed.TeamEvicted).Int64("max_bytes", w.Rejects.TeamMaxBytes).
				Msg("rejects of a team exceeded REJECTS_TEAM_MAX_BYTES: deleted its oldest; find what sends so many")
		}
		if trimmed.Evicted > 0 {
			w.Log.Warn().Int64("rejects", trimmed.Evicted).Int64("max_bytes", w.Rejects.MaxBytes).
				Msg("rejects exceeded REJECTS_MAX_BYTES: deleted the oldest of the largest teams; find what sends so many")
		}
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Warn().Err(err).Msg("could not trim rejects, trying again later")
			}
			return
		}
		w.metrics.setKept(&trimmed, w.Rejects.MaxBytes)
	})
}

// purgeFeed deletes what the change feed needs no more until ctx ends.
func (w *Worker) purgeFeed(ctx context.Context) {
	retry.Every(ctx, feedPurgeEvery, func(ctx context.Context) {
		if err := w.Store.PurgeFeed(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("could not purge the change feed, trying again later")
		}
	})
}
