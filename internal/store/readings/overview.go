package readings

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// HourlyCO2 returns the mean CO2 of some of a team's devices, each named once, in each hour of a window of whole hours:
// NaN for an hour without a value. A device without any value is not in the map.
func (s *Store) HourlyCO2(
	ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (means map[uuid.UUID][]float32, err error) {
	err = s.InSnapshot(ctx, "reading the CO2 of hours", func(tx pgx.Tx) error {
		means = make(map[uuid.UUID][]float32, len(deviceIDs))
		// Enough for the 24,000 hours of a thousand devices.
		if err := s.Set(ctx, tx, "work_mem", "16MB"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, db.ReadingHourlyCO2List, pg.Positional(db.ReadingHourlyCO2ListParams{
			TeamID: teamID, DeviceIds: deviceIDs, WindowFrom: hours.From, WindowTo: hours.To,
		})...)
		if err != nil {
			return err //nolint:wrapcheck // InSnapshot wraps it.
		}
		defer rows.Close()
		missing := slices.Repeat([]float32{float32(math.NaN())}, int(hours.To.Sub(hours.From)/time.Hour))
		for rows.Next() {
			c := rows.RawValues()
			id := uuid.UUID(c[0])
			if means[id] == nil {
				means[id] = slices.Clone(missing)
			}
			hour := int(pg.DecodeTime(c[1]).Sub(hours.From) / time.Hour)
			means[id][hour] = math.Float32frombits(binary.BigEndian.Uint32(c[2]))
		}
		return rows.Err()
	})
	return means, err
}

const (
	// olderReach is how far back before the newest reading of a device older values are searched.
	olderReach = 7 * 24 * time.Hour
	// olderReachOfMany is the same if many values are missing: a metric that a whole team does not measure would be
	// searched in millions of readings.
	olderReachOfMany = 24 * time.Hour
	// olderMany is from how many missing values on that applies: they may take 500,000 readings.
	olderMany = 250
)

// OlderValues searches the newest values of metrics that the newest readings of a team's devices lack. A value that is
// not found within 7 days, or 24 hours if many are missing, is left out.
func (s *Store) OlderValues(
	ctx context.Context, teamID uuid.UUID, missing []roomsensor.MissingValue,
) (found []roomsensor.OlderValue, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	reach := olderReach
	if len(missing) >= olderMany {
		reach = olderReachOfMany
	}
	p := db.ReadingOlderValueListParams{TeamID: teamID, WindowFrom: roomsensor.Forever}
	for _, m := range missing {
		since := m.Before.Add(-reach)
		p.DeviceIds, p.Metrics = append(p.DeviceIds, m.DeviceID), append(p.Metrics, int32(m.Metric))
		p.Since, p.Before = append(p.Since, since), append(p.Before, m.Before)
		p.WindowFrom, p.WindowTo = roomsensor.Earlier(p.WindowFrom, since), roomsensor.Later(p.WindowTo, m.Before)
	}
	err = s.InSnapshot(ctx, "searching older values", func(tx pgx.Tx) error {
		rows, err := s.Queries.ReadingOlderValueList(ctx, tx, p)
		found = pg.Convert(rows, func(row *db.ReadingOlderValueListRow) roomsensor.OlderValue {
			return roomsensor.OlderValue{
				DeviceID: row.DeviceID, Metric: roomsensor.Metric(row.Metric), //nolint:gosec // As it was sent.
				BucketAt: row.BucketAt.UTC(), Value: row.Value + 0, // -0 + 0 is 0, as in a reading.
			}
		})
		return err
	})
	return found, err
}
