package store

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// hourStats aggregates whole hours of devices of some teams (decision 17). A device without readings in them is not in
// the map.
func (s *Store) hourStats(
	ctx context.Context, tx pgx.Tx, teamIDs, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	params := db.HourlySumParams{DeviceIds: deviceIDs, TeamIds: teamIDs, HourFrom: hours.From, HourTo: hours.To}
	rows, err := s.queries.HourlySum(ctx, tx, params)
	if err != nil {
		return nil, err
	}
	if err := s.replaceNonFinite(ctx, tx, rows, params); err != nil {
		return nil, err
	}
	stats := make(map[uuid.UUID]roomsensor.Stats, len(rows))
	for i := range rows {
		stats[rows[i].DeviceID] = hourlyStats(&rows[i])
	}
	return stats, nil
}

// replaceNonFinite computes the rows again that contain NaN or an infinity, without those values, which the API serves
// as null. Only SQL can have inserted such a value; readings_hourly does not filter them, because that would slow down
// every query.
func (s *Store) replaceNonFinite(
	ctx context.Context, tx pgx.Tx, rows []db.HourlySumRow, params db.HourlySumParams,
) error {
	byDevice := map[uuid.UUID]*db.HourlySumRow{}
	params.DeviceIds = nil
	for i := range rows {
		if !isFinite(&rows[i]) {
			byDevice[rows[i].DeviceID] = &rows[i]
			params.DeviceIds = append(params.DeviceIds, rows[i].DeviceID)
		}
	}
	if len(byDevice) == 0 {
		return nil
	}
	finite, err := s.queries.HourlySumFinite(ctx, tx, db.HourlySumFiniteParams(params))
	if err != nil {
		return err
	}
	for i := range finite {
		*byDevice[finite[i].DeviceID] = db.HourlySumRow(finite[i])
	}
	return nil
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
