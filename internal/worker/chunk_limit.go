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
	// OpenChunks decides, for each of some uploads of a team, whether it may create the chunks that start at its times: if
	// the team would have more than a number of them on this day of UTC, with those that were recorded today and those of
	// the uploads before it, it may not. It records those of the others.
	OpenChunks(ctx context.Context, teamID uuid.UUID, uploads [][]time.Time, most int) (allowed []bool, err error)
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
// the database only for uploads that create any, once for those of a team: a transaction for each of thousands of
// uploads that are refused would delay those of others, or never end within writeTimeout.
func (l *chunkLimit) apply(ctx context.Context, results []result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	known, current := l.known.Load(), false
	if known == nil || time.Now().After(known.until) {
		if known, err = l.read(ctx); err != nil {
			return err
		}
		current = true
	}
	ofTeams := map[uuid.UUID]*creations{}
	for i := range results {
		r := &results[i]
		starts := known.New(r.buckets)
		if len(starts) > 0 && !current {
			if known, err = l.read(ctx); err != nil {
				return err
			}
			starts, current = known.New(r.buckets), true
		}
		if len(starts) > roomsensor.MaxNewChunks {
			r.rejectChunks(fmt.Sprintf("The upload would create %d chunks of the table readings; at most %d are allowed. If "+
				"its measured_at are right, send fewer years in one upload, or ask an operator to run roomsensor rejects replay.",
				len(starts), roomsensor.MaxNewChunks))
			continue
		}
		addCreation(ofTeams, r, starts, known.Interval)
	}
	for team, of := range ofTeams {
		if err := l.limit(ctx, team, of); err != nil {
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

// creations are the uploads of a team that create chunks, and when these start.
type creations struct {
	uploads []*result
	starts  [][]time.Time
}

// addCreation adds an upload to those of its team. An upload without a team comes from an operator, and has no limit.
// The chunk of the arrival does not count, because every upload creates it.
func addCreation(ofTeams map[uuid.UUID]*creations, r *result, starts []time.Time, length time.Duration) {
	arrival := &r.delivery.arrival
	if arrival.Team == nil {
		return
	}
	starts = slices.DeleteFunc(starts, func(at time.Time) bool { return at.Add(length).After(arrival.At) })
	if len(starts) == 0 {
		return
	}
	of := ofTeams[*arrival.Team]
	if of == nil {
		of = &creations{}
		ofTeams[*arrival.Team] = of
	}
	of.uploads, of.starts = append(of.uploads, r), append(of.starts, starts)
}

// limit rejects the uploads that would create too many chunks for their team.
func (l *chunkLimit) limit(ctx context.Context, team uuid.UUID, of *creations) error {
	allowed, err := l.store.OpenChunks(ctx, team, of.starts, roomsensor.MaxTeamNewChunks)
	if err != nil {
		return fmt.Errorf("counting the chunks of a team: %w", err)
	}
	for i, r := range of.uploads {
		if !allowed[i] {
			r.rejectChunks(fmt.Sprintf("The uploads of the team would create more than %d chunks of the table readings on one "+
				"day of UTC. If their measured_at are right, replay this reject tomorrow, or ask an operator to run roomsensor "+
				"rejects replay.", roomsensor.MaxTeamNewChunks))
		}
	}
	return nil
}
