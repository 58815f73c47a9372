package readings

import (
	"context"
	"maps"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// HourStats aggregates whole hours of devices of a team (decision 17). A device without readings in them is not in
// the map. It takes the hours from readings_hourly that are stored there and equal the readings, and the others from
// the readings.
func (s *Store) HourStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	if len(deviceIDs) == 0 {
		return nil, nil
	}
	stored, err := s.storedHours(ctx, tx, hours)
	if err != nil {
		return nil, err
	}
	if stored.Empty() {
		return s.ReadingStats(ctx, tx, teamID, deviceIDs, hours)
	}
	stats, notFinite, err := s.hourlyStats(ctx, tx, teamID, deviceIDs, stored)
	if err != nil {
		return nil, err
	}
	// Only SQL can have inserted such a value, which the API serves as null. readings_hourly does not filter them, because
	// that would slow down every query.
	if len(notFinite) > 0 {
		finite, err := s.ReadingStats(ctx, tx, teamID, notFinite, stored)
		if err != nil {
			return nil, err
		}
		maps.Copy(stats, finite)
	}
	for _, rest := range []roomsensor.Window{{From: hours.From, To: stored.From}, {From: stored.To, To: hours.To}} {
		if rest.Empty() {
			continue
		}
		more, err := s.ReadingStats(ctx, tx, teamID, deviceIDs, rest)
		if err != nil {
			return nil, err
		}
		for id, of := range more {
			stats[id] = stats[id].Plus(of)
		}
	}
	return stats, nil
}

// storedHours returns the longest range of hours of a window that readings_hourly has stored and that equal the
// readings.
func (s *Store) storedHours(
	ctx context.Context, tx pgx.Tx, window roomsensor.Window,
) (longest roomsensor.Window, err error) {
	rows, err := s.Queries.HourlyListValid(ctx, tx, db.HourlyListValidParams{WindowFrom: window.From, WindowTo: window.To})
	for i := range rows {
		if from, to := rows[i].HoursFrom.UTC(), rows[i].HoursTo.UTC(); to.Sub(from) > longest.To.Sub(longest.From) {
			longest = roomsensor.Window{From: from, To: to}
		}
	}
	return longest, err
}

// hourlyStats aggregates hours of readings_hourly. notFinite has the devices with a value that is not finite.
func (s *Store) hourlyStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (stats map[uuid.UUID]roomsensor.Stats, notFinite []uuid.UUID, err error) {
	stats = map[uuid.UUID]roomsensor.Stats{}
	rows, err := tx.Query(ctx, db.HourlyStatsList, pg.Positional(db.HourlyStatsListParams{
		DeviceIds: deviceIDs, TeamID: teamID, HourFrom: hours.From, HourTo: hours.To,
	})...)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	for rows.Next() {
		columns := rows.RawValues()
		id := uuid.UUID(columns[0])
		stats[id] = stats[id].Plus(DecodeStats(columns[2:]))
	}
	for id, of := range stats {
		if !IsFinite(&of) {
			notFinite = append(notFinite, id)
		}
	}
	return stats, notFinite, rows.Err()
}

// ReadingStats is HourStats from the readings alone, without values that are not finite.
func (s *Store) ReadingStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	rows, err := tx.Query(ctx, db.ReadingSum, pg.Positional(db.ReadingSumParams{
		DeviceIds: deviceIDs, TeamID: teamID, HourFrom: hours.From, HourTo: hours.To,
	})...)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	stats := make(map[uuid.UUID]roomsensor.Stats, len(deviceIDs))
	for rows.Next() {
		columns := rows.RawValues()
		stats[uuid.UUID(columns[0])] = DecodeStats(columns[1:])
	}
	return stats, rows.Err()
}

// IsFinite checks the sums only: one value that is not finite makes its sum so.
func IsFinite(stats *roomsensor.Stats) bool {
	for m := range stats {
		if sum := stats[m].Sum; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}
