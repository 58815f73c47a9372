package store

import (
	"context"
	"maps"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// hourStats aggregates whole hours of devices of some teams (decision 17). A device without readings in them is not in
// the map. It takes the hours from readings_hourly that are stored there and equal the readings, and the others from
// the readings.
func (s *Store) hourStats(
	ctx context.Context, tx pgx.Tx, teamIDs, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	stored, err := s.storedHours(ctx, tx, hours)
	if err != nil {
		return nil, err
	}
	if stored.Empty() {
		return s.readingStats(ctx, tx, teamIDs, deviceIDs, hours)
	}
	rows, err := s.queries.HourlySum(ctx, tx, db.HourlySumParams{
		DeviceIds: deviceIDs, TeamIds: teamIDs, HourFrom: stored.From, HourTo: stored.To,
	})
	if err != nil {
		return nil, err
	}
	stats := make(map[uuid.UUID]roomsensor.Stats, len(rows))
	var notFinite []uuid.UUID
	for i := range rows {
		stats[rows[i].DeviceID] = hourlyStats(&rows[i])
		if !isFinite(&rows[i]) {
			notFinite = append(notFinite, rows[i].DeviceID)
		}
	}
	// Only SQL can have inserted such a value, which the API serves as null. readings_hourly does not filter them, because
	// that would slow down every query.
	if len(notFinite) > 0 {
		finite, err := s.readingStats(ctx, tx, teamIDs, notFinite, stored)
		if err != nil {
			return nil, err
		}
		maps.Copy(stats, finite)
	}
	for _, rest := range []roomsensor.Window{{From: hours.From, To: stored.From}, {From: stored.To, To: hours.To}} {
		if rest.Empty() {
			continue
		}
		more, err := s.readingStats(ctx, tx, teamIDs, deviceIDs, rest)
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
	rows, err := s.queries.HourlyListValid(ctx, tx, db.HourlyListValidParams{WindowFrom: window.From, WindowTo: window.To})
	for i := range rows {
		if from, to := rows[i].HoursFrom.UTC(), rows[i].HoursTo.UTC(); to.Sub(from) > longest.To.Sub(longest.From) {
			longest = roomsensor.Window{From: from, To: to}
		}
	}
	return longest, err
}

// readingStats is hourStats from the readings alone, without values that are not finite.
func (s *Store) readingStats(
	ctx context.Context, tx pgx.Tx, teamIDs, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	rows, err := s.queries.ReadingSum(ctx, tx, db.ReadingSumParams{
		DeviceIds: deviceIDs, TeamIds: teamIDs, HourFrom: hours.From, HourTo: hours.To,
	})
	stats := make(map[uuid.UUID]roomsensor.Stats, len(rows))
	for i := range rows {
		row := db.HourlySumRow(rows[i])
		stats[row.DeviceID] = hourlyStats(&row)
	}
	return stats, err
}

// isFinite checks the sums only: one value that is not finite makes its sum so.
func isFinite(row *db.HourlySumRow) bool {
	for _, sum := range []float64{row.Co2PpmSum, row.TempCSum, row.HumidityPctSum, row.LuxSum, row.SplDbSum} {
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}

func hourlyStats(row *db.HourlySumRow) roomsensor.Stats {
	stat := func(least, greatest float32, count int64, sum float64) roomsensor.Stat {
		if count == 0 {
			return roomsensor.Stat{}
		}
		// Adding 0 turns -0 into 0, as in a reading.
		return roomsensor.Stat{Min: least + 0, Max: greatest + 0, Sum: sum, Count: count}
	}
	return roomsensor.Stats{
		roomsensor.CO2:      stat(row.Co2PpmMin, row.Co2PpmMax, row.Co2PpmCount, row.Co2PpmSum),
		roomsensor.Temp:     stat(row.TempCMin, row.TempCMax, row.TempCCount, row.TempCSum),
		roomsensor.Humidity: stat(row.HumidityPctMin, row.HumidityPctMax, row.HumidityPctCount, row.HumidityPctSum),
		roomsensor.Lux:      stat(row.LuxMin, row.LuxMax, row.LuxCount, row.LuxSum),
		roomsensor.Sound:    stat(row.SplDbMin, row.SplDbMax, row.SplDbCount, row.SplDbSum),
	}
}
