package readings

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

// EachReading calls do for every reading of a page, the newest bucket first, while further rows arrive. do must not
// keep the reading, which is reused.
func (s *Store) EachReading(
	ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery, do func(*roomsensor.Reading),
) error {
	to := q.Window.To
	if q.Before != nil && q.Before.Before(to) {
		to = *q.Before // Keyset pagination: the window ends where the previous page ended.
	}
	p := db.ReadingListParams{
		DeviceID: deviceID, TeamID: teamID, WindowFrom: q.Window.From, WindowTo: to, Most: int64(q.Limit),
	}
	return s.ReadAnywhere(ctx, func(ctx context.Context, from pg.Reader) error { return eachReading(ctx, from, &p, do) })
}

// eachReading calls do for the readings of a page. After a reading, it moves the parameters to the next one.
func eachReading(
	ctx context.Context, from pg.Reader, p *db.ReadingListParams, do func(*roomsensor.Reading),
) error {
	rows, err := from.Query(ctx, db.ReadingList, pg.Positional(*p)...)
	if err != nil {
		return fmt.Errorf("reading a page: %w", pg.Translate(err))
	}
	defer rows.Close()
	var reading roomsensor.Reading
	for rows.Next() {
		reading = decodeReading(rows)
		p.WindowTo, p.Most = reading.BucketAt, p.Most-1
		do(&reading)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading a page: %w", pg.Translate(err))
	}
	return nil
}

// decodeReading decodes a row of ReadingList.
func decodeReading(rows pgx.Rows) roomsensor.Reading {
	c := rows.RawValues()
	return roomsensor.Reading{
		BucketAt:   pg.DecodeTime(c[0]),
		Values:     pg.DecodeValues(c[1 : 1+roomsensor.MetricCount]),
		IngestedAt: pg.DecodeTime(c[1+roomsensor.MetricCount]),
	}
}

// LateReadings lists the parts of a window in which a device has readings that arrived late, in ascending order. The
// parts have a width, which divides an hour, and begin at multiples of it.
func (s *Store) LateReadings(
	ctx context.Context, teamID, deviceID uuid.UUID, w roomsensor.Window, width time.Duration,
) ([]roomsensor.LateReadings, error) {
	rows, err := s.Queries.ReadingLateList(ctx, s.Pool, db.ReadingLateListParams{
		TeamID: teamID, DeviceID: deviceID, WindowFrom: w.From, WindowTo: w.To,
		WidthSeconds: width.Seconds(), AfterSeconds: roomsensor.LateAfter.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing late readings: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.ReadingLateListRow) roomsensor.LateReadings {
		return roomsensor.LateReadings{
			From: row.PartFrom.UTC(), Delay: time.Duration(row.DelaySeconds * float64(time.Second)),
		}
	}), nil
}

// BackdateReadings records that the readings of a device with buckets in [from, to) arrived half a minute after they
// were measured, but not before a time. A reading that arrived earlier stays as it is.
func (s *Store) BackdateReadings(ctx context.Context, deviceID uuid.UUID, from, to, notBefore time.Time) error {
	err := s.Queries.ReadingSetArrival(ctx, s.Pool, db.ReadingSetArrivalParams{
		NotBefore: notBefore, DeviceID: deviceID, WindowFrom: from, WindowTo: to,
	})
	if err != nil {
		return fmt.Errorf("setting the arrival of readings: %w", pg.Translate(err))
	}
	return nil
}
