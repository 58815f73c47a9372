package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// recentReadings is how far back the newest reading of a device is looked for
// at first: within a chunk or two. What is older is asked for apart, and only
// of devices that were silent since: those chunks are locked while they are put
// in order.
const recentReadings = 7 * 24 * time.Hour

// CurrentDevices lists a page of the live snapshot: the newest reading of each
// device by bucket, and what whole hours sum up to (decision 17).
func (s *Store) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) (current []roomsensor.CurrentDevice, err error) {
	filter, ok := metadataFilter(q.Metadata)
	if !ok {
		return []roomsensor.CurrentDevice{}, nil
	}
	err = s.inSnapshot(ctx, "reading the snapshot", func(tx pgx.Tx) error {
		// A generic plan reads the hours of every device, not of those asked for,
		// and touches every chunk.
		if err := s.set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
			return err
		}
		devices, err := s.devices(ctx, tx, teamID, q, filter)
		if err != nil {
			return err
		}
		ids := mapped(devices, func(d *roomsensor.Device) uuid.UUID { return d.ID })
		latest, err := s.latest(ctx, tx, teamID, ids, hours.To.Add(-recentReadings))
		if err != nil {
			return err
		}
		stats, err := s.hourStats(ctx, tx, teamID, ids, hours)
		if err != nil {
			return err
		}
		current = mapped(devices, func(d *roomsensor.Device) roomsensor.CurrentDevice {
			return roomsensor.CurrentDevice{Device: *d, Latest: latest[d.ID], Last24h: stats[d.ID]}
		})
		return nil
	})
	return current, err
}

// latest finds the newest reading of devices, first from an instant on and then
// before it.
func (s *Store) latest(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, ids []uuid.UUID, recent time.Time,
) (map[uuid.UUID]*roomsensor.Reading, error) {
	latest := make(map[uuid.UUID]*roomsensor.Reading, len(ids))
	for _, window := range []roomsensor.Window{{From: recent, To: roomsensor.Forever}, {To: recent}} {
		var silent []uuid.UUID
		for _, id := range ids {
			if latest[id] == nil {
				silent = append(silent, id)
			}
		}
		if len(silent) == 0 {
			break
		}
		rows, err := s.queries.ReadingLatestList(ctx, tx, db.ReadingLatestListParams{
			TeamID: teamID, DeviceIds: silent, WindowFrom: window.From, WindowTo: window.To,
		})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			latest[rows[i].DeviceID] = latestReading(&rows[i])
		}
	}
	return latest, nil
}

func latestReading(row *db.ReadingLatestListRow) *roomsensor.Reading {
	r := &roomsensor.Reading{BucketAt: row.BucketAt.UTC(), IngestedAt: row.IngestedAt.UTC()}
	for m, x := range [roomsensor.MetricCount]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb} {
		if x != nil {
			r.Values.Set(roomsensor.Metric(m), *x)
		}
	}
	return r
}
