package write

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
)

// OpenChunks decides, for each of some uploads of a team, whether it may create the chunks that start at its times: if
// the team would have more than a number of them on this day of UTC, with those that were recorded today and those of
// the uploads before it, it may not. It records those of the others, in one transaction.
func (s *Store) OpenChunks(
	ctx context.Context, teamID uuid.UUID, uploads [][]time.Time, most int,
) (allowed []bool, err error) {
	err = s.InTx(ctx, "counting the chunks of a team", func(tx pgx.Tx) error {
		if err := s.Queries.OpenedChunkLock(ctx, tx); err != nil {
			return err
		}
		recorded, err := s.Queries.OpenedChunkList(ctx, tx, teamID)
		if err != nil {
			return err
		}
		var opened []time.Time
		if allowed, opened = allow(uploads, recorded, most); len(opened) == 0 {
			return nil
		}
		return s.Queries.OpenedChunkInsert(ctx, tx, db.OpenedChunkInsertParams{TeamID: teamID, StartsAt: opened})
	})
	return allowed, err
}

// allow returns which uploads may create the chunks that start at their times, and those chunks that were not recorded
// before.
func allow(uploads [][]time.Time, recorded []time.Time, most int) (allowed []bool, opened []time.Time) {
	known := make(map[int64]bool, most) // by Unix time
	for _, at := range recorded {
		known[at.Unix()] = true
	}
	for _, starts := range uploads {
		var more []time.Time
		for _, at := range starts {
			if !known[at.Unix()] {
				more = append(more, at)
			}
		}
		if len(known)+len(more) > most && len(more) > 0 {
			allowed = append(allowed, false)
			continue
		}
		allowed, opened = append(allowed, true), append(opened, more...)
		for _, at := range more {
			known[at.Unix()] = true
		}
	}
	return allowed, opened
}
