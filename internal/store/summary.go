package store

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// HourStats sums up whole hours of a team's devices (decision 17). A device
// without readings in them is not there.
func (s *Store) HourStats(
	ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (stats map[uuid.UUID]roomsensor.Stats, err error) {
	err = s.inSnapshot(ctx, "summing up hours", func(tx pgx.Tx) error {
		if err := s.set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
			return err
		}
		stats, err = s.hourStats(ctx, tx, teamID, deviceIDs, hours)
		return err
	})
	return stats, err
}

func (s *Store) hourStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	params := db.HourlySumParams{DeviceIds: deviceIDs, TeamID: teamID, HourFrom: hours.From, HourTo: hours.To}
	rows, err := s.queries.HourlySum(ctx, tx, params)
	if err != nil {
		return nil, err
	}
	if err := s.repairSums(ctx, tx, rows, params); err != nil {
		return nil, err
	}
	stats := make(map[uuid.UUID]roomsensor.Stats, len(rows))
	for i := range rows {
		stats[rows[i].DeviceID] = summary(&rows[i])
	}
	return stats, nil
}

// repairSums replaces the sums that a number spoiled which is served as null.
// Such a number comes by SQL alone, so readings_hourly does not look for it,
// which would make every answer slower.
func (s *Store) repairSums(ctx context.Context, tx pgx.Tx, rows []db.HourlySumRow, hours db.HourlySumParams) error {
	spoiled := map[uuid.UUID]*db.HourlySumRow{}
	hours.DeviceIds = nil
	for i := range rows {
		if !isFinite(&rows[i]) {
			spoiled[rows[i].DeviceID] = &rows[i]
			hours.DeviceIds = append(hours.DeviceIds, rows[i].DeviceID)
		}
	}
	if len(spoiled) == 0 {
		return nil
	}
	repaired, err := s.queries.HourlySumFinite(ctx, tx, db.HourlySumFiniteParams(hours))
	if err != nil {
		return err
	}
	for i := range repaired {
		*spoiled[repaired[i].DeviceID] = db.HourlySumRow(repaired[i])
	}
	return nil
}

// isFinite looks at the sums alone: one number that is not finite makes them so.
func isFinite(row *db.HourlySumRow) bool {
	for _, sum := range []float64{row.Co2PpmSum, row.TempCSum, row.HumidityPctSum, row.LuxSum, row.SplDbSum} {
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}

func summary(row *db.HourlySumRow) roomsensor.Stats {
	stat := func(least, greatest float32, count int64, sum float64) roomsensor.Stat {
		if count == 0 {
			return roomsensor.Stat{}
		}
		// -0 is 0 here as in a reading: -0 + 0 is 0.
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
