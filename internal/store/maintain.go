package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

const (
	// orderTimeout bounds the rewrite of one chunk; two million rows took 7 s.
	orderTimeout = "10min"
	// orderLockTimeout is what requests of an old chunk may have to wait behind
	// the wait for its lock.
	orderLockTimeout = "1s"
)

// ChunksToOrder lists the chunks that ended before an instant and are not in
// the order of their key, the newest first.
func (s *Store) ChunksToOrder(ctx context.Context, endedBefore time.Time) ([]roomsensor.Chunk, error) {
	rows, err := s.queries.ChunkToOrderList(ctx, s.pool, endedBefore)
	if err != nil {
		return nil, fmt.Errorf("listing chunks: %w", translate(err))
	}
	return mapped(rows, func(row *db.ChunkToOrderListRow) roomsensor.Chunk {
		return roomsensor.Chunk{
			Name: row.Chunk, Range: roomsensor.Window{From: row.RangeStart.UTC(), To: row.RangeEnd.UTC()}, Bytes: row.Bytes,
		}
	}), nil
}

// OrderChunk puts a chunk in the order of its key, so that the readings of a
// device lie on a few pages. Meanwhile nobody reads or writes the chunk. It
// reports false where another process is at it; a lock that is not had in time
// is an error that may pass later.
func (s *Store) OrderChunk(ctx context.Context, name string) (ordered bool, err error) {
	err = s.inTx(ctx, "ordering a chunk", func(tx pgx.Tx) error {
		if err := s.set(ctx, tx, "lock_timeout", orderLockTimeout, "statement_timeout", orderTimeout); err != nil {
			return err
		}
		ordered, err = s.queries.ChunkOrder(ctx, tx, name)
		return err
	})
	return ordered, err
}
