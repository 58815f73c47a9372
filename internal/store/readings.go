package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// EachReading calls do for every reading of a page, the newest bucket first, while further rows arrive. do must not
// keep the reading, which is reused.
func (s *Store) EachReading(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery, do func(*roomsensor.Reading),
) error {
	to := q.Window.To
	if q.Before != nil && q.Before.Before(to) {
		to = *q.Before // Keyset pagination: the window ends where the previous page ended.
	}
	rows, err := s.pool.Query(ctx, db.ReadingList, positional(db.ReadingListParams{
		DeviceID: deviceID, TeamID: teamID, WindowFrom: q.Window.From, WindowTo: to, Most: int64(q.Limit),
	})...)
	if err != nil {
		return fmt.Errorf("reading a page: %w", translate(err))
	}
	defer rows.Close()
	var reading roomsensor.Reading
	for rows.Next() {
		reading = decodeReading(rows)
		do(&reading)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading a page: %w", translate(err))
	}
	return nil
}

// CurrentDevices reads a page of the live snapshot: devices with their newest reading and the statistics of some whole
// hours (decision 17).
func (s *Store) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) (current []roomsensor.CurrentDevice, err error) {
	err = s.inSnapshot(ctx, "reading the snapshot", func(tx pgx.Tx) error {
		current = []roomsensor.CurrentDevice{}
		ids := []uuid.UUID{}
		err := s.eachDevice(ctx, tx, teamID, q, func(d *roomsensor.Device) {
			current = append(current, roomsensor.CurrentDevice{Device: *d})
			ids = append(ids, d.ID)
		})
		if err != nil {
			return err
		}
		latest, err := s.latest(ctx, tx, teamID, ids, hours.To)
		if err != nil {
			return err
		}
		stats, err := s.hourStats(ctx, tx, teamID, ids, hours)
		if err != nil {
			return err
		}
		for i, id := range ids {
			current[i].Latest, current[i].Last24h = latest[id], stats[id]
		}
		return nil
	})
	return current, err
}
