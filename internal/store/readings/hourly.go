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

// HourStats aggregates whole hours of devices of a team (decision 17). A device without readings in them is not in the
// map. It takes the hours from readings_hourly that are stored there and equal the readings, and only the others from
// the readings.
func (s *Store) HourStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	stats := make(map[uuid.UUID]roomsensor.Stats, len(deviceIDs))
	if len(deviceIDs) == 0 {
		return stats, nil
	}
	valid, err := s.Queries.HourlyListValid(ctx, tx, db.HourlyListValidParams{WindowFrom: hours.From, WindowTo: hours.To})
	if err != nil {
		return nil, err
	}
	add := func(read func(context.Context, pgx.Tx, uuid.UUID, []uuid.UUID, roomsensor.Window) (
		map[uuid.UUID]roomsensor.Stats, error,
	), part roomsensor.Window,
	) error {
		if part.Empty() {
			return nil
		}
		more, err := read(ctx, tx, teamID, deviceIDs, part)
		for id, of := range more {
			stats[id] = stats[id].Plus(of)
		}
		return err
	}
	rest := hours
	for _, v := range valid {
		stored := roomsensor.Window{From: v.HoursFrom.UTC(), To: v.HoursTo.UTC()}
		if err := add(s.ReadingStats, roomsensor.Window{From: rest.From, To: stored.From}); err != nil {
			return nil, err
		}
		if err := add(s.storedStats, stored); err != nil {
			return nil, err
		}
		rest.From = stored.To
	}
	return stats, add(s.ReadingStats, rest)
}

// storedStats is HourStats from readings_hourly. Only SQL can have inserted a value that is not finite, which the API
// serves as null. readings_hourly does not filter these, because that would slow down every query: the hours of a
// device with one come from the readings.
func (s *Store) storedStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	stats, err := sums(ctx, tx, db.HourlySum, pg.Positional(db.HourlySumParams{
		DeviceIds: deviceIDs, TeamID: teamID, HourFrom: hours.From, HourTo: hours.To,
	}))
	if err != nil {
		return nil, err
	}
	var notFinite []uuid.UUID
	for id, of := range stats {
		if !IsFinite(&of) {
			notFinite = append(notFinite, id)
		}
	}
	if len(notFinite) == 0 {
		return stats, nil
	}
	finite, err := s.ReadingStats(ctx, tx, teamID, notFinite, hours)
	maps.Copy(stats, finite)
	return stats, err
}

// ReadingStats is HourStats from the readings alone, without values that are not finite.
func (s *Store) ReadingStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	return sums(ctx, tx, db.ReadingSum, pg.Positional(db.ReadingSumParams{
		DeviceIds: deviceIDs, TeamID: teamID, HourFrom: hours.From, HourTo: hours.To,
	}))
}

// sums runs HourlySum or ReadingSum.
func sums(ctx context.Context, tx pgx.Tx, query string, params []any) (map[uuid.UUID]roomsensor.Stats, error) {
	rows, err := tx.Query(ctx, query, params...)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	stats := map[uuid.UUID]roomsensor.Stats{}
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
