package store

import (
	"context"
	"fmt"
	"time"

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

// lookBack is how far back the newest reading of a device is searched, step by step. Each step is only for the devices
// for which the steps before found nothing, because the time to plan a query grows with the number of its chunks, and
// old chunks are locked while they are rewritten. The first step is one or two chunks. A last step, without an end,
// searches all older chunks.
var lookBack = []time.Duration{7 * 24 * time.Hour, 13 * 7 * 24 * time.Hour, 2 * 365 * 24 * time.Hour}

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

// latest reads the newest reading of some devices, in steps back from now.
func (s *Store) latest(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, ids []uuid.UUID, now time.Time,
) (map[uuid.UUID]*roomsensor.Reading, error) {
	latest := make(map[uuid.UUID]*roomsensor.Reading, len(ids))
	window := roomsensor.Window{To: roomsensor.Forever}
	for step := range len(lookBack) + 1 {
		window.From = time.Time{}
		if step < len(lookBack) {
			window.From = now.Add(-lookBack[step])
		}
		var missing []uuid.UUID
		for _, id := range ids {
			if latest[id] == nil {
				missing = append(missing, id)
			}
		}
		if len(missing) == 0 {
			break
		}
		rows, err := s.queries.ReadingLatestList(ctx, tx, db.ReadingLatestListParams{
			TeamID: teamID, DeviceIds: missing, WindowFrom: window.From, WindowTo: window.To,
		})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			latest[rows[i].DeviceID] = latestReading(&rows[i])
		}
		window.To = window.From
	}
	return latest, nil
}

func latestReading(row *db.ReadingLatestListRow) *roomsensor.Reading {
	r := &roomsensor.Reading{BucketAt: row.BucketAt.UTC(), IngestedAt: row.IngestedAt.UTC()}
	for m, x := range [roomsensor.MetricCount]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb} {
		if x != nil {
			r.Values.Set(roomsensor.Metric(m), *x)
		}
	}
	return r
}
