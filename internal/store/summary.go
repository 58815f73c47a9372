package store

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// addSummaries adds the 24 hours from an instant to each device (decision 17).
func (s *Store) addSummaries(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, devices []roomsensor.CurrentDevice, from time.Time,
) error {
	place := make(map[uuid.UUID]int, len(devices))
	ids := make([]uuid.UUID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
		place[ids[i]] = i
	}
	hours := db.HourlySumParams{
		DeviceIds: ids, TeamID: teamID, HourFrom: from, HourTo: from.Add(roomsensor.SummaryHours * time.Hour),
	}
	rows, err := s.queries.HourlySum(ctx, tx, hours)
	if err != nil {
		return err
	}
	if err := s.repairSums(ctx, tx, rows, hours); err != nil {
		return err
	}
	for i := range rows {
		devices[place[rows[i].DeviceID]].Last24h = summary(&rows[i])
	}
	return nil
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

func summary(row *db.HourlySumRow) [roomsensor.MetricCount]roomsensor.Stat {
	stat := func(least, greatest float32, count int64, sum float64) roomsensor.Stat {
		if count == 0 {
			return roomsensor.Stat{}
		}
		// -0 is 0 here as in a reading: -0 + 0 is 0.
		return roomsensor.Stat{Min: least + 0, Max: greatest + 0, Mean: float32(sum/float64(count)) + 0, Count: count}
	}
	return [roomsensor.MetricCount]roomsensor.Stat{
		roomsensor.CO2:      stat(row.Co2PpmMin, row.Co2PpmMax, row.Co2PpmCount, row.Co2PpmSum),
		roomsensor.Temp:     stat(row.TempCMin, row.TempCMax, row.TempCCount, row.TempCSum),
		roomsensor.Humidity: stat(row.HumidityPctMin, row.HumidityPctMax, row.HumidityPctCount, row.HumidityPctSum),
		roomsensor.Lux:      stat(row.LuxMin, row.LuxMax, row.LuxCount, row.LuxSum),
		roomsensor.Sound:    stat(row.SplDbMin, row.SplDbMax, row.SplDbCount, row.SplDbSum),
	}
}
