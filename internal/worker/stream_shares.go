package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

const (
	// sharesOfStream is the number of shares of a full stream: a share of a stream of the default size is 2 MiB. What a
	// team has is thus known to a few megabytes, for a statement per 2 MiB of uploads.
	sharesOfStream = 4096
	// shareTimeout bounds the use of the database for shares, which are estimates: one that is not recorded does no harm.
	shareTimeout = 5 * time.Second
)

// shareStore is the database as a worker keeps the shares of teams in the stream.
type shareStore interface {
	// RecordStreamShares records shares of the stream. A share with the sequence of a recorded one is ignored.
	RecordStreamShares(ctx context.Context, shares []roomsensor.StreamShare) error
	// StreamShares lists all shares of the stream by sequence.
	StreamShares(ctx context.Context) ([]roomsensor.StreamShare, error)
	// DeleteStreamShares deletes the shares of uploads that the stream has no more: those below its first sequence, and of
	// each team in before those below a sequence.
	DeleteStreamShares(ctx context.Context, first uint64, before map[uuid.UUID]uint64) error
}

// streamShares counts the uploads that this worker stored, and knows the last shares. Those of all workers together are
// in the database; without it, a worker uses those that it knows.
type streamShares struct {
	mu    sync.Mutex
	bytes int64 // of uploads since the last share
	known []roomsensor.StreamShare
}

// count adds uploads that were stored, and returns those that became shares of a size in bytes.
func (s *streamShares) count(results []result, size int64) (shares []roomsensor.StreamShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range results {
		d := results[i].delivery
		if !results[i].stored {
			continue
		}
		s.bytes += int64(len(d.text)) + laneUploadBytes
		if n := s.bytes / size; n > 0 {
			s.bytes -= n * size
			share := roomsensor.StreamShare{Sequence: d.arrival.Sequence, Bytes: n * size}
			if d.arrival.Team != nil {
				share.Team = *d.arrival.Team
			}
			shares = append(shares, share)
		}
	}
	s.known = append(s.known, shares...)
	s.known = s.known[max(0, len(s.known)-sharesOfStream):]
	return shares
}

// recordShares records the shares of uploads that were stored.
func (w *Worker) recordShares(ctx context.Context, results []result) {
	maxBytes := w.Queue.MaxBytes()
	if maxBytes <= 0 {
		return
	}
	shares := w.shares.count(results, max(1, maxBytes/sharesOfStream))
	if len(shares) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	if err := w.Store.RecordStreamShares(ctx, shares); err != nil {
		w.Log.Debug().Err(err).Msg("could not record shares of the stream")
	}
}

// streamShares returns the shares in the database, or those that this worker knows.
func (w *Worker) streamShares(ctx context.Context) []roomsensor.StreamShare {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	list, err := w.Store.StreamShares(ctx)
	w.shares.mu.Lock()
	defer w.shares.mu.Unlock()
	if err != nil {
		w.Log.Warn().Err(err).Msg("could not read what teams have in the stream, using what this worker knows")
		return slices.Clone(w.shares.known)
	}
	w.shares.known = slices.Clone(list)
	return list
}
