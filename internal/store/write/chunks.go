package write

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
)

// OpenChunks records that uploads of a team create the chunks that start at some times, unless they were recorded on
// this day of UTC. If the team would have more than a number of them on this day, it records nothing and returns false.
func (s *Store) OpenChunks(
	ctx context.Context, teamID uuid.UUID, starts []time.Time, most int,
) (allowed bool, err error) {
	err = s.InTx(ctx, "counting the chunks of a team", func(tx pgx.Tx) error {
		if err := s.Queries.OpenedChunkLock(ctx, tx); err != nil {
			return err
		}
		allowed, err = s.Queries.OpenedChunkInsert(ctx, tx, db.OpenedChunkInsertParams{
			TeamID: teamID, StartsAt: starts, Most: int64(most),
		})
		return err
	})
	return allowed, err
}
