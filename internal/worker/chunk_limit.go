package worker

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// chunksFor is the time for which a worker remembers the chunks of the readings. Others create chunks meanwhile, so it
// reads them again if one seems to be missing. Only a retention deletes chunks.
const chunksFor = 10 * time.Minute

// chunks is the database as a writer limits the chunks of uploads.
type chunks interface {
	// Chunks returns the chunks of the readings.
	Chunks(ctx context.Context) (roomsensor.Chunks, error)
	// OpenChunks records that uploads of a team create the chunks that start at some times, unless they were recorded
	// on this day of UTC. If the team would have more than a number of them on this day, it records nothing and returns
	// false.
	OpenChunks(ctx context.Context, teamID uuid.UUID, starts []time.Time, most int) (allowed bool, err error)
}

// chunkLimit limits the chunks that uploads create (decision 53 c). Several writers may use it at the same time.
type chunkLimit struct {
	store chunks
	known atomic.Pointer[knownChunks] // nil before the first use
}

type knownChunks struct {
	roomsensor.Chunks

	until time.Time
}

// apply rejects the uploads that would create too many chunks. Apart from reading the chunks every chunksFor, it uses
// the database only for uploads that create any.
func (l *chunkLimit) apply(ctx context.Context, results []result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	known, current := l.known.Load(), false
	counted := map[openedChunk]bool{}
	if known == nil || time.Now().After(known.until) {
		if known, err = l.read(ctx); err != nil {
			return err
		}
		current = true
	}
	for i := range results {
		r := &results[i]
		starts := known.New(r.buckets)
		if len(starts) > 0 && !current {
			if known, err = l.read(ctx); err != nil {
				return err
			}
			starts, current = known.New(r.buckets), true
		}
		if err := l.limit(ctx, r, starts, known.Interval, counted); err != nil {
			return err
		}
	}
	return nil
}

func (l *chunkLimit) read(ctx context.Context) (*knownChunks, error) {
	list, err := l.store.Chunks(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the chunks: %w", err)
	}
	known := &knownChunks{list, time.Now().Add(chunksFor)}
	l.known.Store(known)
	return known, nil
}

// openedChunk is a chunk that the uploads of a team create.
type openedChunk struct {
	team   uuid.UUID
	starts time.Time
}

// limit rejects an upload if the chunks that it would create are too many for it, or for the team of its credential. An
// upload without a team comes from an operator. The chunk of the arrival does not count for the team, because every
// upload creates it, nor do those that were counted for the team in this batch.
func (l *chunkLimit) limit(
	ctx context.Context, r *result, starts []time.Time, length time.Duration, counted map[openedChunk]bool,
) error {
	if len(starts) > roomsensor.MaxNewChunks {
		r.rejectChunks(fmt.Sprintf("The upload would create %d chunks of the table readings; at most %d are allowed. If its "+
			"measured_at are right, send fewer years in one upload, or ask an operator to run roomsensor rejects replay.",
			len(starts), roomsensor.MaxNewChunks))
		return nil
	}
	arrival := &r.delivery.arrival
	if arrival.Team == nil {
		return nil
	}
	starts = slices.DeleteFunc(starts, func(at time.Time) bool {
		return at.Add(length).After(arrival.At) || counted[openedChunk{*arrival.Team, at}]
	})
	if len(starts) == 0 {
		return nil
	}
	allowed, err := l.store.OpenChunks(ctx, *arrival.Team, starts, roomsensor.MaxTeamNewChunks)
	if err != nil {
		return fmt.Errorf("counting the chunks of a team: %w", err)
	}
	if !allowed {
		r.rejectChunks(fmt.Sprintf("The uploads of the team would create more than %d chunks of the table readings on one "+
			"day of UTC. If their measured_at are right, replay this reject tomorrow, or ask an operator to run roomsensor "+
			"rejects replay.", roomsensor.MaxTeamNewChunks))
		return nil
	}
	for _, at := range starts {
		counted[openedChunk{*arrival.Team, at}] = true
	}
	return nil
}
