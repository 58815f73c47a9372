// Package feed reads the change feed: its watermark and its rounds. schema/00007_feed.sql explains it. This file
// has the watermark, and what workers record and delete; round.go reads a round; delete.go deletes ranges of readings,
// and expire.go those that have expired.
package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Store reads the change feed. It is safe for concurrent use.
type Store struct {
	*pg.DB
	Limits Limits // Tests set other ones.
}

// Limits bound a page of a round.
type Limits struct {
	// Candidates is the most readings that one statement looks at.
	Candidates int
	// Time is after which time a page ends, although it may have few readings or none.
	Time time.Duration
}

// New returns a store with the pools of a role.
func New(d *pg.DB) *Store {
	// In the worst case, of one page on disk per reading, a statement takes two seconds.
	return &Store{d, Limits{Candidates: 20_000, Time: time.Second}}
}

// FeedWatermark returns a new watermark of the change feed: every reading before it is committed, and no transaction
// adds one later. It takes two statements, because the first must be committed before the second runs. The position is
// read after both, and is the end of the log: a transaction of another program may commit and release its lock before
// its commit is on disk.
func (s *Store) FeedWatermark(ctx context.Context) (mark roomsensor.FeedWatermark, err error) {
	reserved, err := s.Queries.FeedReserve(ctx, s.Pool)
	if err == nil {
		reserved, err = s.Queries.FeedWatermark(ctx, s.Pool, reserved)
	}
	if err == nil && s.HasStandbys() {
		var row db.PositionGetRow
		row, err = s.Queries.PositionGet(ctx, s.Pool)
		mark.Position = roomsensor.Position{System: row.SystemID, Timeline: row.Timeline, Log: row.Inserted}
	}
	if err != nil {
		return roomsensor.FeedWatermark{}, fmt.Errorf("reading the watermark: %w", pg.Translate(err))
	}
	mark.At = reserved.UTC()
	return mark, nil
}

// FeedChanges returns the devices of some teams that changed in a part of the feed, or whose readings were deleted.
// One can be there twice.
func (s *Store) FeedChanges(
	ctx context.Context, teamIDs []uuid.UUID, part roomsensor.FeedRound,
) (roomsensor.FeedChanges, error) {
	changes := roomsensor.FeedChanges{Devices: map[uuid.UUID][]uuid.UUID{}}
	var err error
	changes.Any, err = s.Queries.FeedChangedAll(ctx, s.Pool, db.FeedChangedAllParams{FromAt: part.From, ToAt: part.To})
	if err != nil {
		return changes, fmt.Errorf("reading where the feed changed: %w", pg.Translate(err))
	}
	rows, err := s.Queries.FeedChangedList(ctx, s.Pool,
		db.FeedChangedListParams{FromAt: part.From, ToAt: part.To, TeamIds: teamIDs})
	if err != nil {
		return changes, fmt.Errorf("listing changed devices: %w", pg.Translate(err))
	}
	for _, row := range rows {
		changes.Devices[row.TeamID] = append(changes.Devices[row.TeamID], row.DeviceID)
	}
	deleted, err := s.Queries.FeedDeletedList(ctx, s.Pool,
		db.FeedDeletedListParams{FromAt: part.From, ToAt: part.To, TeamIds: teamIDs})
	if err != nil {
		return changes, fmt.Errorf("listing devices with deletions: %w", pg.Translate(err))
	}
	for _, row := range deleted {
		changes.Devices[row.TeamID] = append(changes.Devices[row.TeamID], row.DeviceID)
	}
	return changes, nil
}

const (
	// feedBatchesKeep is the retention of feed_batches, and of rows of foreign_writes until they are settled. A client
	// that polls once in this time has its changes read from there.
	feedBatchesKeep = 15 * time.Minute
	// feedPurged is how many rows are deleted at once.
	feedPurged = 5000
)

// PurgeFeed deletes what the change feed needs no more. Any number of processes may call it.
func (s *Store) PurgeFeed(ctx context.Context) error { return s.purgeFeed(ctx, time.Now()) }

// purgeFeed is PurgeFeed at a time. One that is wrong by minutes makes some rounds slower.
func (s *Store) purgeFeed(ctx context.Context, now time.Time) error {
	batchesBefore, daysBefore := now.Add(-feedBatchesKeep), now.Add(-roomsensor.FeedKeep-time.Hour)
	for more := true; more; {
		err := s.InTx(ctx, "purging the change feed", func(tx pgx.Tx) error {
			err := s.Queries.FeedStateUpdate(ctx, tx,
				db.FeedStateUpdateParams{BatchesBefore: batchesBefore, DaysBefore: daysBefore})
			if err != nil {
				return err
			}
			batches, err := s.Queries.FeedBatchPurge(ctx, tx,
				db.FeedBatchPurgeParams{BatchesBefore: batchesBefore, Most: feedPurged})
			if err != nil {
				return err
			}
			settled, err := s.Queries.ForeignWriteSettle(ctx, tx,
				db.ForeignWriteSettleParams{BatchesBefore: batchesBefore, Most: feedPurged})
			if err != nil {
				return err
			}
			more = batches == feedPurged || settled == feedPurged
			return s.Queries.FeedPurge(ctx, tx, daysBefore)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// QueueChanges queues a statement that tells the change feed where a transaction wrote. The rows are sorted by key.
func QueueChanges(batch *pgx.Batch, rows []roomsensor.DeviceMeasurement) {
	batch.Queue(db.FeedBatchInsert, pg.Positional(batchParams(rows))...)
}

// batchParams returns the buckets of each device. A device whose buckets lie more than a day apart is there several
// times, so that one reading of a device with a wrong clock makes no round read years.
func batchParams(rows []roomsensor.DeviceMeasurement) (p db.FeedBatchInsertParams) {
	for i := range rows {
		id, bucket := rows[i].DeviceID, rows[i].Bucket()
		if last := len(p.DeviceIds) - 1; last >= 0 && p.DeviceIds[last] == id && bucket.Sub(p.LastAt[last]) <= 24*time.Hour {
			p.LastAt[last] = bucket
			continue
		}
		p.DeviceIds, p.FirstAt, p.LastAt = append(p.DeviceIds, id), append(p.FirstAt, bucket), append(p.LastAt, bucket)
	}
	return p
}
