package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Layout is how the readings are stored.
type Layout struct {
	Chunks, Bytes int64
	ChunkInterval time.Duration // of new chunks
	Columnstore   *Columnstore  // nil on the Apache edition
	Hourly        *Hourly       // nil on the Apache edition
	DropAfter     time.Duration
}

// Columnstore is the part of the readings that is stored as columns.
type Columnstore struct {
	After       time.Duration // age at which chunks are converted; 0 means never
	Chunks      int64
	BytesBefore int64 // size of these chunks as rows
	Bytes       int64
}

// Hourly is the state of the continuous aggregate readings_hourly.
type Hourly struct {
	MaterializedUntil *time.Time // nil: nothing is materialized yet
	RefreshedAt       *time.Time // nil: never
}

// Layout returns how the readings are stored. Every migration must be applied.
func (s *Store) Layout(ctx context.Context) (Layout, error) { return s.layout(ctx, s.Pool) }

func (s *Store) layout(ctx context.Context, conn db.DBTX) (Layout, error) {
	row, err := s.Queries.LayoutGet(ctx, conn)
	if err != nil {
		return Layout{}, fmt.Errorf("reading the layout: %w", pg.Translate(err))
	}
	layout := Layout{
		Chunks: row.Chunks, Bytes: row.Bytes, DropAfter: time.Duration(row.DropAfterSeconds) * time.Second,
		ChunkInterval: time.Duration(row.ChunkIntervalSeconds) * time.Second,
	}
	if row.ColumnstoreChunks == nil {
		return layout, nil
	}
	layout.Columnstore = &Columnstore{
		After: time.Duration(row.ColumnstoreAfterSeconds) * time.Second, Chunks: *row.ColumnstoreChunks,
		BytesBefore: *row.ColumnstoreBytesBefore, Bytes: *row.ColumnstoreBytes,
	}
	layout.Hourly = &Hourly{MaterializedUntil: pg.UTC(row.MaterializedUntil), RefreshedAt: pg.UTC(row.RefreshedAt)}
	return layout, nil
}

// Chunks returns the chunks of the readings.
func (s *Store) Chunks(ctx context.Context) (roomsensor.Chunks, error) {
	row, err := s.Queries.ChunkListRanges(ctx, s.Pool)
	if err != nil {
		return roomsensor.Chunks{}, fmt.Errorf("listing the ranges of chunks: %w", pg.Translate(err))
	}
	chunks := roomsensor.Chunks{
		Interval: time.Duration(row.IntervalSeconds) * time.Second, Ranges: make([]roomsensor.Window, len(row.RangeStarts)),
	}
	for i := range chunks.Ranges {
		chunks.Ranges[i] = roomsensor.Window{From: row.RangeStarts[i].UTC(), To: row.RangeEnds[i].UTC()}
	}
	return chunks, nil
}

// orderLockTimeout bounds the wait for the lock of a chunk, because requests for old readings queue behind it.
const orderLockTimeout = "1s"

// Chunk is a part of the table of readings: those of the buckets in Range.
type Chunk struct {
	Name           string
	Range          roomsensor.Window
	Bytes          int64      // with its indexes
	PostponedUntil *time.Time // nil unless a rewrite within the same time limit, or a longer one, took too long
}

// rewriteBytesPerSecond is how much of a chunk one core rewrites.
const rewriteBytesPerSecond = 32 << 20

// RewriteTime estimates how long OrderChunk locks the chunk.
func (c *Chunk) RewriteTime() time.Duration {
	return time.Duration(float64(c.Bytes) / rewriteBytesPerSecond * float64(time.Second))
}

// ChunksToOrder lists the chunks that ended before a time and are not in primary-key order, the newest first. limit is
// the time limit of their rewrite.
func (s *Store) ChunksToOrder(ctx context.Context, endedBefore time.Time, limit time.Duration) ([]Chunk, error) {
	rows, err := s.Queries.ChunkListUnordered(ctx, s.Pool, db.ChunkListUnorderedParams{
		EndedBefore: endedBefore, LimitSeconds: limit.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing chunks: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.ChunkListUnorderedRow) Chunk {
		return Chunk{
			Name: row.Chunk, Range: roomsensor.Window{From: row.RangeStart.UTC(), To: row.RangeEnd.UTC()}, Bytes: row.Bytes,
			PostponedUntil: pg.UTC(row.PostponedUntil),
		}
	}), nil
}

// The reasons why OrderChunk did not rewrite a chunk, although the database works. Other chunks, or a later attempt,
// may succeed.
var (
	ErrRewriteRunning = errors.New("another process is rewriting a chunk")
	ErrChunkInUse     = errors.New("the chunk is in use")
	ErrRewriteTooLong = errors.New("the rewrite took too long")
)

// OrderChunk rewrites a chunk in primary-key order, so that the readings of a device are on few pages. Meanwhile the
// chunk cannot be read or written. It returns ErrRewriteRunning if another process is rewriting a chunk, and
// ErrChunkInUse if it does not get the lock of the chunk within orderLockTimeout. After limit it returns
// ErrRewriteTooLong and postpones the chunk for a day, for all processes.
func (s *Store) OrderChunk(ctx context.Context, name string, limit time.Duration) error {
	err := s.InTx(ctx, "ordering a chunk", func(tx pgx.Tx) error {
		timeout := strconv.FormatInt(limit.Milliseconds(), 10)
		if err := s.Set(ctx, tx, "lock_timeout", orderLockTimeout, "statement_timeout", timeout); err != nil {
			return err
		}
		ordered, err := s.Queries.ChunkOrder(ctx, tx, name)
		if err == nil && !ordered {
			return ErrRewriteRunning
		}
		return err
	})
	switch {
	case pg.Violates(err, pg.StateLockNotAvailable, ""), pg.Violates(err, pg.StateDeadlock, ""):
		return fmt.Errorf("%w: %w", ErrChunkInUse, err)
	case pg.Violates(err, pg.StateQueryCanceled, ""):
		postponed := s.Queries.ChunkPostpone(ctx, s.Pool, db.ChunkPostponeParams{Chunk: name, LimitSeconds: limit.Seconds()})
		if postponed != nil {
			return fmt.Errorf("postponing a chunk: %w", pg.Translate(postponed))
		}
		return fmt.Errorf("%w: %w", ErrRewriteTooLong, err)
	}
	return err
}
