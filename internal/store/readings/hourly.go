package readings

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// WindowStats are the statistics of a device over the last hour of a window, and over the hours before it.
type WindowStats struct{ Past, Last roomsensor.Stats }

// HourStats aggregates whole hours of devices of a team (decision 17). A device without readings in them is not in the
// map. It takes the hours before the last one from readings_hourly if they are stored there and equal the readings, and
// only the others from the readings.
func (s *Store) HourStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]WindowStats, error) {
	r := hourReader{s, tx, teamID, deviceIDs, hours.To.Add(-time.Hour), map[uuid.UUID]WindowStats{}}
	var valid []db.HourlyListValidRow
	if hours.From.Before(r.last) {
		var err error
		valid, err = s.Queries.HourlyListValid(ctx, tx, db.HourlyListValidParams{WindowFrom: hours.From, WindowTo: r.last})
		if err != nil {
			return nil, err
		}
	}
	rest := hours
	for _, v := range valid {
		stored := roomsensor.Window{From: v.HoursFrom.UTC(), To: v.HoursTo.UTC()}
		if err := r.addReadings(ctx, roomsensor.Window{From: rest.From, To: stored.From}); err != nil {
			return nil, err
		}
		if err := r.addStored(ctx, stored); err != nil {
			return nil, err
		}
		rest.From = stored.To
	}
	return r.stats, r.addReadings(ctx, rest)
}

// hourReader adds parts of the hours to statistics.
type hourReader struct {
	*Store

	tx        pgx.Tx
	teamID    uuid.UUID
	deviceIDs []uuid.UUID
	last      time.Time // the beginning of the last hour
	stats     map[uuid.UUID]WindowStats
}

// addStored adds hours from readings_hourly, all before the last one. Only SQL can have inserted a value that is not
// finite, which the API serves as null. readings_hourly does not filter these, because that would slow down every
// query: the hours of a device with one come from the readings.
func (r *hourReader) addStored(ctx context.Context, hours roomsensor.Window) error {
	stored, err := r.sums(ctx, db.HourlySum, pg.Positional(db.HourlySumParams{
		DeviceIds: r.deviceIDs, TeamID: r.teamID, HourFrom: hours.From, HourTo: hours.To,
	}))
	if err != nil {
		return err
	}
	var notFinite []uuid.UUID
	for id, of := range stored {
		if !isFinite(&of.Past) {
			notFinite = append(notFinite, id)
		}
	}
	if len(notFinite) > 0 {
		finite, err := r.readingSums(ctx, notFinite, hours)
		if err != nil {
			return err
		}
		maps.Copy(stored, finite)
	}
	r.addSums(stored)
	return nil
}

// addReadings adds hours from the readings, without values that are not finite.
func (r *hourReader) addReadings(ctx context.Context, hours roomsensor.Window) error {
	if hours.Empty() {
		return nil
	}
	stats, err := r.readingSums(ctx, r.deviceIDs, hours)
	r.addSums(stats)
	return err
}

func (r *hourReader) readingSums(
	ctx context.Context, deviceIDs []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]WindowStats, error) {
	return r.sums(ctx, db.ReadingSum, pg.Positional(db.ReadingSumParams{
		LastHour: r.last, DeviceIds: deviceIDs, TeamID: r.teamID, HourFrom: hours.From, HourTo: hours.To,
	}))
}

func (r *hourReader) addSums(stats map[uuid.UUID]WindowStats) {
	for id, of := range stats {
		sum := r.stats[id]
		r.stats[id] = WindowStats{Past: sum.Past.Plus(of.Past), Last: sum.Last.Plus(of.Last)}
	}
}

// sums runs HourlySum or ReadingSum.
func (r *hourReader) sums(ctx context.Context, query string, params []any) (map[uuid.UUID]WindowStats, error) {
	rows, err := r.tx.Query(ctx, query, params...)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	stats := map[uuid.UUID]WindowStats{}
	for rows.Next() {
		columns := rows.RawValues()
		id, isLast := uuid.UUID(columns[0]), columns[1][0] == 1
		of := stats[id]
		if isLast {
			of.Last = DecodeStats(columns[2:])
		} else {
			of.Past = DecodeStats(columns[2:])
		}
		stats[id] = of
	}
	return stats, rows.Err()
}

// isFinite checks the sums only: one value that is not finite makes its sum so.
func isFinite(stats *roomsensor.Stats) bool {
	for m := range stats {
		if sum := stats[m].Sum; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}
