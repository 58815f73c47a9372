package worker

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// countEvery is the interval at which a worker stores what sources received. A person waits for the first message.
	countEvery = 2 * time.Second
	// countTimeout bounds one such statement.
	countTimeout = 5 * time.Second
	// maxKeptMessage is the size up to which the newest message of a source is kept for people.
	maxKeptMessage = 64 << 10
)

// sourceCounts counts what became of the messages of sources since it was last stored. It is not exact: a killed worker
// loses what it counted last, and a message that is delivered again counts again.
type sourceCounts struct {
	mu       sync.Mutex
	bySource map[uuid.UUID]*roomsensor.SourceCount
}

// count adds the messages that were stored.
func (c *sourceCounts) count(results []result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range results {
		if r := &results[i]; r.stored && r.message != nil {
			c.add(r)
		}
	}
}

func (c *sourceCounts) add(r *result) {
	arrival := &r.delivery.arrival
	of := c.bySource[*arrival.Source]
	if of == nil {
		if c.bySource == nil {
			c.bySource = map[uuid.UUID]*roomsensor.SourceCount{}
		}
		of = &roomsensor.SourceCount{SourceID: *arrival.Source}
		c.bySource[of.SourceID] = of
	}
	of.Messages++
	of.Stored += int64(r.resolved())
	of.Rejected += int64(len(r.rejects))
	of.Ignored += int64(r.message.Ignored)
	if !arrival.At.Before(of.Newest.ReceivedAt) {
		of.Newest = roomsensor.SourceMessage{ReceivedAt: arrival.At, Precision: arrival.Precision}
		if len(r.delivery.text) <= maxKeptMessage {
			of.Newest.Text = r.delivery.text
		}
	}
}

// take returns the counts and begins again.
func (c *sourceCounts) take() (counts []roomsensor.SourceCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.bySource {
		counts = append(counts, *of)
	}
	c.bySource = nil
	return counts
}

// recordSources stores the counts of sources until ctx ends.
func (w *Worker) recordSources(ctx context.Context) {
	retry.Every(ctx, countEvery, w.storeSourceCounts)
}

// storeSourceCounts stores the counts of sources. What cannot be stored is dropped.
func (w *Worker) storeSourceCounts(ctx context.Context) {
	counts := w.sources.take()
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if err := w.Store.RecordSources(ctx, counts); err != nil {
		w.Log.Warn().Err(err).Msg("could not record what sources received")
	}
}
