package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// RetireDevice takes a device of a team out of use at a time: it ends the open assignment, removes the unit, and takes
// the device out of lists and counts. Readings and earlier assignments stay. A device that is retired stays as it is. A
// unit or an assignment brings the device back. Errors are a HardwareConflictError and an AssignmentConflictError for a
// unit or an assignment that began at that time or later.
func (s *Store) RetireDevice(
	ctx context.Context, teamID, deviceID uuid.UUID, at time.Time,
) (changed roomsensor.Device, err error) {
	err = s.InChange(ctx, "retiring a device", func(tx pgx.Tx) error {
		last, err := s.lockHardware(ctx, tx, teamID, deviceID)
		if err != nil {
			return err
		}
		if last != nil && last.RemovedAt == nil {
			if err := s.removeHardware(ctx, tx, teamID, deviceID, last, at); err != nil {
				return err
			}
		}
		device, err := s.device(ctx, tx, teamID, deviceID)
		if err != nil {
			return err
		}
		if open := device.ActiveAssignment; open != nil {
			c := assignmentChange{Store: s, tx: tx, teamID: teamID}
			if err := c.endAssignment(ctx, roomsensor.AssignmentEnd{ID: open.ID, At: at}); err != nil {
				return err
			}
		}
		if err := s.setRetired(ctx, tx, teamID, deviceID, &at); err != nil {
			return err
		}
		changed, err = s.device(ctx, tx, teamID, deviceID)
		return err
	})
	return changed, err
}

// setRetired sets since when a device is retired, unless it is; nil brings it back.
func (s *Store) setRetired(ctx context.Context, conn db.DBTX, teamID, deviceID uuid.UUID, at *time.Time) error {
	return s.Queries.DeviceRetire(ctx, conn, db.DeviceRetireParams{TeamID: teamID, DeviceID: deviceID, At: at})
}

// RetiredDevices lists the retired devices of a team by id.
func (s *Store) RetiredDevices(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Device, error) {
	rows, err := s.Queries.DeviceListByTeam(ctx, s.Pool, db.DeviceListByTeamParams{TeamID: teamID, Retired: true})
	if err != nil {
		return nil, fmt.Errorf("listing retired devices: %w", pg.Translate(err))
	}
	return pg.TryConvert(rows, Device)
}
