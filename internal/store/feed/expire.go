package feed

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

const (
	// expireTime bounds a pass, so that it ends long before the next one may begin.
	expireTime = 10 * time.Minute
	// expireDevices is how many devices with expired readings are listed at once: each of the teams has as many of them.
	// A list takes 14 to 21 s for a million devices with a retention, however many it returns (bench/NOTES.md).
	expireDevices = 50_000
	// expireListTimeout limits a list. It is longer than the timeout of other statements, for slower machines.
	expireListTimeout = "3min"
)

// ExpireReadings makes a pass that deletes the readings that are older than the retention of their device or team, with
// their samples, unless a process began one within the last hour. It returns how many it deleted by team, and whether
// the pass began. A transaction deletes at most 35 days of a device, and the teams take turns, so that a team with many
// of them delays no other one. What the time does not suffice for, the next pass deletes. A device that fails does not
// end the pass; its error is returned.
func (s *Store) ExpireReadings(
	ctx context.Context,
) (expired map[uuid.UUID]roomsensor.ReadingRange, begun bool, err error) {
	passes, err := s.Queries.RetentionBegin(ctx, s.Pool)
	if err != nil || passes == 0 {
		return nil, false, pg.Translate(err)
	}
	ctx, cancel := context.WithTimeout(ctx, expireTime)
	defer cancel()
	expired = map[uuid.UUID]roomsensor.ReadingRange{}
	for more := true; more; {
		devices, failed := s.expiredDevices(ctx)
		err, more = cmp.Or(err, failed), false
		for i := range devices {
			deleted, failed := s.expire(ctx, &devices[i])
			if ctx.Err() != nil {
				return expired, true, pg.Translate(err)
			}
			if failed != nil {
				err = cmp.Or(err, failed)
				continue
			}
			of := expired[devices[i].TeamID]
			of.Readings, of.Samples = of.Readings+deleted.Readings, of.Samples+deleted.Samples
			expired[devices[i].TeamID] = of
			more = more || deleted.Readings+deleted.Samples > 0
		}
	}
	return expired, true, pg.Translate(err)
}

// expiredDevices lists devices with expired readings.
func (s *Store) expiredDevices(ctx context.Context) (list []db.ExpiredDeviceListRow, err error) {
	err = s.ReadOnly(ctx, s.Pool, "listing devices with expired readings", func(tx pgx.Tx) error {
		if err := s.Set(ctx, tx, "statement_timeout", expireListTimeout); err != nil {
			return err
		}
		list, err = s.Queries.ExpiredDeviceList(ctx, tx, expireDevices)
		return err
	})
	return list, err
}

// expire deletes expired readings of a device in a transaction.
func (s *Store) expire(ctx context.Context, d *db.ExpiredDeviceListRow) (deleted db.ReadingExpireRow, err error) {
	err = pgx.BeginTxFunc(ctx, s.Pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		deleted, err = s.Queries.ReadingExpire(ctx, tx, db.ReadingExpireParams{DeviceID: d.DeviceID, Since: d.FirstAt})
		return err
	})
	if err != nil {
		return deleted, fmt.Errorf("deleting expired readings of device %s: %w", d.DeviceID, err)
	}
	return deleted, nil
}
