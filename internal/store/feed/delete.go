package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

const (
	// deleteWindow bounds one transaction of a deletion: 10,080 readings.
	deleteWindow = 35 * 24 * time.Hour
	// deleteAttempts is how often a transaction is attempted while workers write the same rows.
	deleteAttempts = 5
	// deleteInterval is the interval at which a deletion reads whether earlier transactions have ended. Until then the
	// watermark of the feed stays.
	deleteInterval = 50 * time.Millisecond
	// deleteWait is the most time that a deletion waits for them: readings appear late meanwhile.
	deleteWait = 20 * time.Second
)

// CountReadings counts the readings of a device in a window of buckets, with their samples.
func (s *Store) CountReadings(
	ctx context.Context, deviceID uuid.UUID, window roomsensor.Window,
) (c roomsensor.ReadingRange, err error) {
	err = s.InSnapshot(ctx, "counting readings", func(tx pgx.Tx) error {
		row, err := s.Queries.ReadingCountRange(ctx, tx, db.ReadingCountRangeParams{
			DeviceID: deviceID, WindowFrom: window.From, WindowTo: window.To,
		})
		if err != nil {
			return err
		}
		c.Readings, c.Samples, c.First, c.Last = row.Readings, row.Samples, row.FirstAt.UTC(), row.LastAt.UTC()
		_, err = s.Queries.ReadingGetFirst(ctx, tx, db.ReadingGetFirstParams{DeviceID: deviceID, Since: window.To})
		c.Newest = errors.Is(err, pgx.ErrNoRows) && c.Readings > 0
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return c, err
}

// DeleteReadings deletes the readings of a device in a window of buckets, with their samples, and returns the numbers.
// It works in transactions of deleteWindow, the oldest first: after a failure, another call deletes the rest. Each of
// them adds an entry with the reason to the audit log, and a deletion to the change feed.
//
// A worker may write the same device meanwhile. What it stores before the deletion is deleted. What it stores
// afterwards stays, and comes after the deletion in the change feed, see schema/00007_feed.sql.
func (s *Store) DeleteReadings(
	ctx context.Context, deviceID uuid.UUID, window roomsensor.Window, reason string,
) (deleted roomsensor.ReadingRange, err error) {
	for {
		part, err := s.firstPart(ctx, deviceID, window)
		if err != nil || part.Empty() {
			return deleted, err
		}
		d := deletion{store: s, deviceID: deviceID, window: part, reason: reason}
		if err := d.deleteRetrying(ctx); err != nil {
			return deleted, err
		}
		deleted.Readings += d.deleted.Readings
		deleted.Samples += d.deleted.Samples
		window.From = part.To
	}
}

// firstPart returns the part of a window that the next transaction deletes: up to deleteWindow after the first reading.
// It is empty if there is no reading.
func (s *Store) firstPart(
	ctx context.Context, deviceID uuid.UUID, window roomsensor.Window,
) (part roomsensor.Window, err error) {
	err = s.InSnapshot(ctx, "looking for readings", func(tx pgx.Tx) error {
		first, err := s.Queries.ReadingGetFirst(ctx, tx, db.ReadingGetFirstParams{DeviceID: deviceID, Since: window.From})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		part = roomsensor.Window{From: window.From, To: first.UTC().Add(deleteWindow)}
		if !first.Before(window.To) {
			part = roomsensor.Window{}
		}
		return err
	})
	return part.Intersect(window), err
}

// deletion deletes a part of the readings of a device in a transaction.
type deletion struct {
	store    *Store
	deviceID uuid.UUID
	window   roomsensor.Window
	reason   string
	deleted  roomsensor.ReadingRange
}

// deleteRetrying deletes. It tries again if a worker wrote the same rows at the same time, or if the team has another
// deletion at the same time.
func (d *deletion) deleteRetrying(ctx context.Context) (err error) {
	for range deleteAttempts {
		err = pgx.BeginTxFunc(ctx, d.store.Pool, pg.ReadCommitted, func(tx pgx.Tx) error {
			if err := d.store.SetActor(ctx, tx); err != nil {
				return err
			}
			return d.deleteIn(ctx, tx)
		})
		if !pg.Violates(err, pg.StateDeadlock, "") && !pg.Violates(err, pg.StateSerialization, "") &&
			!pg.Violates(err, pg.StateUnique, "") {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("deleting readings: %w", pg.Translate(err))
	}
	return nil
}

// deleteIn deletes in a transaction.
func (d *deletion) deleteIn(ctx context.Context, tx pgx.Tx) error {
	q := d.store.Queries
	if err := d.store.Set(ctx, tx, pg.ReasonSetting, d.reason); err != nil {
		return err
	}
	if err := q.WorkerSet(ctx, tx); err != nil {
		return err
	}
	kept, err := q.ReadingDeletionCount(ctx, tx, d.deviceID)
	if err != nil {
		return err
	}
	if kept >= roomsensor.MaxDeletions {
		return roomsensor.ErrTooManyDeletions
	}
	at, err := q.FeedBeginDeletion(ctx, tx)
	if err != nil {
		return err
	}
	if err := d.store.waitForWriters(ctx, at); err != nil {
		return err
	}
	rows, err := q.ReadingDeleteRange(ctx, tx, db.ReadingDeleteRangeParams{
		DeviceID: d.deviceID, WindowFrom: d.window.From, WindowTo: d.window.To,
	})
	d.deleted.Readings, d.deleted.Samples = rows.Readings, rows.Samples
	if err != nil || rows.Readings+rows.Samples == 0 {
		return err
	}
	return q.ReadingDeletionInsert(ctx, tx, db.ReadingDeletionInsertParams{
		DeviceID: d.deviceID, EffectiveAt: at, DeletedFrom: d.window.From, DeletedTo: d.window.To,
		Readings: d.deleted.Readings, Samples: d.deleted.Samples,
	})
}

// waitForWriters returns when the watermark of the feed is a time that is locked: all transactions with an earlier one
// have ended.
func (s *Store) waitForWriters(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	return retry.Until(ctx, deleteInterval, func(ctx context.Context) (bool, error) {
		mark, err := s.FeedWatermark(ctx)
		return !mark.At.Before(at), err
	})
}
