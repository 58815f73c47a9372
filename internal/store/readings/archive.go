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

// archiveStatementTimeout bounds each statement of an archive, which reads a month, or a day in order.
const archiveStatementTimeout = "10min"

// FirstReading returns the first bucket of a team before a time; that time, if there is none.
func (s *Store) FirstReading(ctx context.Context, teamID uuid.UUID, before time.Time) (first time.Time, err error) {
	err = s.inArchive(ctx, func(tx pgx.Tx) error {
		first, err = s.Queries.ReadingGetFirstOfTeam(ctx, tx,
			db.ReadingGetFirstOfTeamParams{TeamID: teamID, WindowTo: before})
		return err
	})
	return first.UTC(), err
}

// SummarizeReadings counts the readings of a team in a window.
func (s *Store) SummarizeReadings(
	ctx context.Context, teamID uuid.UUID, w roomsensor.Window,
) (summary roomsensor.ReadingSummary, err error) {
	err = s.inArchive(ctx, func(tx pgx.Tx) error {
		row, err := s.Queries.ReadingSummarize(ctx, tx,
			db.ReadingSummarizeParams{TeamID: teamID, WindowFrom: w.From, WindowTo: w.To})
		summary = roomsensor.ReadingSummary(row)
		return err
	})
	return summary, err
}

// EachArchived calls do for every reading of a team in a window, from one snapshot, by bucket_at, then device_id. The
// server sorts one day at a time. do must not keep the row, which is reused.
func (s *Store) EachArchived(
	ctx context.Context, teamID uuid.UUID, w roomsensor.Window, do func(*roomsensor.ExportRow) error,
) error {
	return s.inArchive(ctx, func(tx pgx.Tx) error {
		units := map[string]string{}
		for from := w.From; from.Before(w.To); from = from.AddDate(0, 0, 1) {
			rows, err := tx.Query(ctx, db.ReadingArchive, pg.Positional(db.ReadingArchiveParams{
				TeamID: teamID, WindowFrom: from, WindowTo: roomsensor.Earlier(from.AddDate(0, 0, 1), w.To),
			})...)
			if err == nil {
				err = eachArchived(rows, units, do)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// eachArchived calls do for the rows of ReadingArchive. units has the hardware ids that occurred.
func eachArchived(rows pgx.Rows, units map[string]string, do func(*roomsensor.ExportRow) error) error {
	const ingestedAt = 2 + roomsensor.MetricCount
	defer rows.Close()
	var row roomsensor.ExportRow
	for rows.Next() {
		c := rows.RawValues()
		unit, known := units[string(c[ingestedAt+2])]
		if !known {
			unit = string(c[ingestedAt+2])
			units[unit] = unit
		}
		row = roomsensor.ExportRow{
			BucketAt: pg.DecodeTime(c[0]), DeviceID: uuid.UUID(c[1]), Values: pg.DecodeValues(c[2:ingestedAt]),
			IngestedAt: pg.DecodeTime(c[ingestedAt]), MeasuredAt: pg.DecodeTime(c[ingestedAt+1]), HardwareID: unit,
		}
		if err := do(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inArchive runs a function that only reads, from one snapshot.
func (s *Store) inArchive(ctx context.Context, run func(pgx.Tx) error) error {
	return s.InSnapshot(ctx, "reading for an archive", func(tx pgx.Tx) error {
		if err := s.Set(ctx, tx, "statement_timeout", archiveStatementTimeout); err != nil {
			return fmt.Errorf("setting the timeout: %w", err)
		}
		return run(tx)
	})
}
