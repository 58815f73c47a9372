package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Installations lists where and when some distinct hardware units were installed, by unit (decision 40). One that was
// never installed is not in the map.
func (s *Store) Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error) {
	rows, err := s.Queries.HardwareList(ctx, s.Pool, hardwareIDs)
	if err != nil {
		return nil, fmt.Errorf("listing installations: %w", pg.Translate(err))
	}
	units := make(map[string][]roomsensor.Installation)
	for _, row := range rows {
		units[row.HardwareID] = append(units[row.HardwareID], roomsensor.Installation{
			HardwareID: row.HardwareID, DeviceID: row.DeviceID, TeamID: row.TeamID,
			From: row.InstalledAt, To: row.RemovedAt, Samples: sampleRules[row.Sampling],
		})
	}
	return units, nil
}

// UnitHistory lists the installations of a unit, by its hardware id or alias, in devices of a team, the oldest first.
func (s *Store) UnitHistory(ctx context.Context, teamID uuid.UUID, unit string) ([]roomsensor.UnitHistory, error) {
	hardwareID, err := s.knownUnit(ctx, s.Pool, teamID, unit)
	if err != nil {
		return nil, err
	}
	rows, err := s.Queries.HardwareListByUnit(ctx, s.Pool, db.HardwareListByUnitParams{
		TeamID: teamID, HardwareID: hardwareID,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the installations of a unit: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.HardwareListByUnitRow) roomsensor.UnitHistory {
		return roomsensor.UnitHistory{
			DeviceID: row.DeviceID, DeviceName: row.DisplayName, LastSeenAt: pg.UTC(row.LastSeenAt),
			From: pg.UTC(row.InstalledAt), To: pg.UTC(row.RemovedAt),
		}
	}), nil
}

// DeviceInstallations lists the installations in a device of a team, the newest first, at most limit of them.
func (s *Store) DeviceInstallations(
	ctx context.Context, teamID, deviceID uuid.UUID, limit int,
) ([]roomsensor.Installation, error) {
	rows, err := s.Queries.HardwareListHistory(ctx, s.Pool, db.HardwareListHistoryParams{
		TeamID: teamID, DeviceID: deviceID, Most: int64(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing the installations in a device: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.HardwareListHistoryRow) roomsensor.Installation {
		return roomsensor.Installation{
			HardwareID: row.HardwareID, DeviceID: deviceID, TeamID: teamID,
			From: pg.UTC(row.InstalledAt), To: pg.UTC(row.RemovedAt),
		}
	}), nil
}

// DeviceUnits lists the installations in some devices of a team, for completeness.Expected. A device of another team is
// not in the map.
func (s *Store) DeviceUnits(
	ctx context.Context, conn db.DBTX, teamID uuid.UUID, deviceIDs []uuid.UUID,
) (map[uuid.UUID][]roomsensor.Installation, error) {
	rows, err := s.Queries.HardwareListByDevice(ctx, conn, db.HardwareListByDeviceParams{
		TeamID: teamID, DeviceIds: deviceIDs,
	})
	if err != nil {
		return nil, err
	}
	devices := make(map[uuid.UUID][]roomsensor.Installation, len(deviceIDs))
	for i := range rows {
		devices[rows[i].DeviceID] = append(devices[rows[i].DeviceID], roomsensor.Installation{
			DeviceID: rows[i].DeviceID, TeamID: teamID, From: rows[i].InstalledAt, To: rows[i].RemovedAt,
		})
	}
	return devices, nil
}

// ReplaceHardware installs a unit, by its hardware id or alias, in a device of a team at a time and removes the one
// that is installed. Readings that are stored stay with their device. It returns a HardwareConflictError if the unit is
// installed elsewhere, or if the device had another unit at that time or later.
func (s *Store) ReplaceHardware(
	ctx context.Context, teamID, deviceID uuid.UUID, unit string, at time.Time,
) (changed roomsensor.Device, err error) {
	err = s.InChange(ctx, "replacing a hardware unit", func(tx pgx.Tx) error {
		last, err := s.lockHardware(ctx, tx, teamID, deviceID)
		if err != nil {
			return err
		}
		hardwareID, err := s.unitNamed(ctx, tx, teamID, unit)
		if err != nil {
			return err
		}
		if last != nil && last.RemovedAt == nil {
			if last.HardwareID == hardwareID {
				return hardwareConflict(roomsensor.HardwareAlreadyThere, deviceID, hardwareID)
			}
			if err := s.removeHardware(ctx, tx, teamID, deviceID, last, at); err != nil {
				return err
			}
		}
		if err := s.installHardware(ctx, tx, teamID, deviceID, hardwareID, &at); err != nil {
			return err
		}
		err = s.Queries.DeviceSetHardware(ctx, tx, db.DeviceSetHardwareParams{
			TeamID: teamID, DeviceID: deviceID, HardwareID: hardwareID,
		})
		if err != nil {
			return err
		}
		changed, err = s.device(ctx, tx, teamID, deviceID)
		return err
	})
	return changed, err
}

// RemoveHardware removes the unit from a device of a team at a time. The device still shows it as its last one
// (decision 40). It returns a HardwareConflictError if no unit is installed, or if the unit was installed at that time
// or later.
func (s *Store) RemoveHardware(
	ctx context.Context, teamID, deviceID uuid.UUID, at time.Time,
) (changed roomsensor.Device, err error) {
	err = s.InChange(ctx, "removing a hardware unit", func(tx pgx.Tx) error {
		last, err := s.lockHardware(ctx, tx, teamID, deviceID)
		if err != nil {
			return err
		}
		if last == nil || last.RemovedAt != nil {
			return hardwareConflict(roomsensor.HardwareNotInstalled, deviceID, "")
		}
		if err := s.removeHardware(ctx, tx, teamID, deviceID, last, at); err != nil {
			return err
		}
		changed, err = s.device(ctx, tx, teamID, deviceID)
		return err
	})
	return changed, err
}

// installHardware records that a unit is installed in a device from a time on; nil is unbounded.
func (s *Store) installHardware(
	ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID, hardwareID string, from *time.Time,
) error {
	// The exclusion constraints guarantee the rules. This query comes first because it can name the other device, and
	// no query can run after a statement that failed.
	other, err := s.Queries.HardwareGetSince(ctx, tx, db.HardwareGetSinceParams{HardwareID: hardwareID, At: from})
	if err == nil {
		conflict := hardwareConflict(roomsensor.HardwareInstalled, other.DeviceID, hardwareID)
		conflict.From, conflict.To = other.InstalledAt, other.RemovedAt
		return conflict
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	err = s.Queries.HardwareInsert(ctx, tx, db.HardwareInsertParams{
		TeamID: teamID, HardwareID: hardwareID, DeviceID: deviceID, InstalledAt: from,
	})
	switch {
	case pg.Violates(err, pg.StateExclusion, pg.ConstraintUnitInOneDevice):
		return hardwareConflict(roomsensor.HardwareJustInstalled, deviceID, hardwareID)
	case pg.Violates(err, pg.StateExclusion, pg.ConstraintDeviceHasOneUnit):
		return hardwareConflict(roomsensor.HardwareReplacedLater, deviceID, hardwareID)
	case err != nil:
		return err
	}
	return s.setRetired(ctx, tx, teamID, deviceID, nil)
}

// removeHardware ends the installation of the unit that is in a device.
func (s *Store) removeHardware(
	ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID, last *db.HardwareListHistoryRow, at time.Time,
) error {
	if last.InstalledAt != nil && !at.After(*last.InstalledAt) {
		conflict := hardwareConflict(roomsensor.HardwareInstalledLater, deviceID, last.HardwareID)
		conflict.From = last.InstalledAt
		return conflict
	}
	return s.Queries.HardwareRemove(ctx, tx, db.HardwareRemoveParams{TeamID: teamID, DeviceID: deviceID, RemovedAt: at})
}

// lockHardware locks a device and returns its last installation; nil if it never had one.
func (s *Store) lockHardware(
	ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID,
) (*db.HardwareListHistoryRow, error) {
	if err := s.lockTeamDevice(ctx, tx, teamID, deviceID); err != nil {
		return nil, err
	}
	newest, err := s.Queries.HardwareListHistory(ctx, tx, db.HardwareListHistoryParams{
		TeamID: teamID, DeviceID: deviceID, Most: 1,
	})
	if len(newest) == 0 { // A device that was inserted with SQL may never have had a unit.
		return nil, err
	}
	return &newest[0], err
}

func hardwareConflict(
	conflict roomsensor.HardwareConflict, deviceID uuid.UUID, hardwareID string,
) *roomsensor.HardwareConflictError {
	return &roomsensor.HardwareConflictError{
		Conflict:     conflict,
		Installation: roomsensor.Installation{HardwareID: hardwareID, DeviceID: deviceID},
	}
}
