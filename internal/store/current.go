package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// CurrentDevices reads a page of the live snapshot: devices with their newest reading and the statistics of some whole
// hours (decision 17), the last of which is the current one. An empty window that ends now reads no statistics.
func (s *Store) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) (current []roomsensor.CurrentDevice, err error) {
	err = s.InSnapshot(ctx, "reading the snapshot", func(tx pgx.Tx) error {
		current = []roomsensor.CurrentDevice{}
		err := s.EachDeviceOn(ctx, tx, teamID, q, func(d *roomsensor.Device) {
			current = append(current, roomsensor.CurrentDevice{Device: *d})
		})
		if err != nil {
			return err
		}
		l := s.newLatestSearch(tx, []uuid.UUID{teamID}, hours.To)
		silent, err := l.searchRecent(ctx, deviceIDs(current))
		if err == nil {
			err = l.searchSilent(ctx, silent)
		}
		if err != nil {
			return err
		}
		return s.addReadings(ctx, l, hours, current)
	})
	return current, err
}

// addReadings adds to devices the newest readings that were found and the statistics of some hours.
func (s *Store) addReadings(
	ctx context.Context, l *latestSearch, hours roomsensor.Window, devices []roomsensor.CurrentDevice,
) (err error) {
	var stats map[uuid.UUID]roomsensor.Stats
	if !hours.Empty() {
		if stats, err = s.HourStats(ctx, l.tx, l.teamIDs, deviceIDs(devices), hours); err != nil {
			return err
		}
	}
	for i := range devices {
		d := &devices[i]
		d.Latest, d.Last24h = l.found[d.ID], stats[d.ID]
	}
	return nil
}

func deviceIDs(devices []roomsensor.CurrentDevice) []uuid.UUID {
	ids := make([]uuid.UUID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	return ids
}
