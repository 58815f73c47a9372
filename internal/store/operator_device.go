package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// NewDevice is what an operator says of a device to be.
type NewDevice struct {
	TeamID      uuid.UUID
	HardwareID  string
	DisplayName *string
	Metadata    map[string]string
	// InstalledAt is nil for the default: since ever for a unit that was never
	// installed, so that its buffered readings count, else now.
	InstalledAt *time.Time
}

// OwnedDevice is a device and the team it is of.
type OwnedDevice struct {
	roomsensor.Device
	TeamID uuid.UUID
}

// CreateDevice makes a device with a unit in it.
func (s *Store) CreateDevice(ctx context.Context, d NewDevice, now time.Time) (created OwnedDevice, err error) {
	metadata := []byte("{}")
	if len(d.Metadata) > 0 {
		if metadata, err = json.Marshal(d.Metadata); err != nil {
			return created, fmt.Errorf("writing metadata: %w", err)
		}
	}
	err = s.inTx(ctx, "creating a device", func(tx pgx.Tx) error {
		from, err := s.installFrom(ctx, tx, d, now)
		if err != nil {
			return err
		}
		id, err := s.queries.DeviceInsert(ctx, tx, db.DeviceInsertParams{
			TeamID: d.TeamID, HardwareID: d.HardwareID, DisplayName: d.DisplayName, Metadata: metadata,
		})
		if violates(err, stateForeignKey, "") {
			return unknownTeam(d.TeamID)
		}
		if err != nil {
			return err
		}
		if err := s.install(ctx, tx, id, d.HardwareID, from); err != nil {
			return err
		}
		created, err = s.ownedDevice(ctx, tx, id)
		return err
	})
	return created, err
}

func (s *Store) installFrom(ctx context.Context, tx pgx.Tx, d NewDevice, now time.Time) (*time.Time, error) {
	if d.InstalledAt != nil {
		return d.InstalledAt, nil
	}
	known, err := s.queries.HardwareKnown(ctx, tx, d.HardwareID)
	if err != nil || !known {
		return nil, err
	}
	return &now, nil
}

// install puts a unit into a device from an instant on; nil is since ever.
func (s *Store) install(ctx context.Context, tx pgx.Tx, deviceID uuid.UUID, hardwareID string, from *time.Time) error {
	// Looked at beforehand, as a failed statement ends the transaction; the
	// exclusion constraint stays the judge.
	sits, err := s.queries.HardwareSince(ctx, tx, db.HardwareSinceParams{HardwareID: hardwareID, At: from})
	if err == nil {
		return unitIsTaken(hardwareID, sits)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	err = s.queries.HardwareInsert(ctx, tx, db.HardwareInsertParams{
		HardwareID: hardwareID, DeviceID: deviceID, InstalledAt: from,
	})
	switch {
	case violates(err, stateExclusion, "device_hardware_one_device"):
		return refused("Unit %s was just installed in another device. Look at roomsensor device list.", hardwareID)
	case violates(err, stateExclusion, "device_hardware_one_unit"):
		return refused("Device %s held another unit at that time. Choose a later time.", deviceID)
	}
	return err
}

func unitIsTaken(hardwareID string, sits db.HardwareSinceRow) error {
	if sits.RemovedAt == nil {
		return refused("Unit %s sits in device %s. Take it out first: roomsensor device remove-hardware %s.",
			hardwareID, sits.DeviceID, sits.DeviceID)
	}
	return refused("Unit %s sat in device %s until %s. Choose that time or a later one.",
		hardwareID, sits.DeviceID, roomsensor.FormatTime(*sits.RemovedAt))
}

// TeamDevices lists every device of a team by id.
func (s *Store) TeamDevices(ctx context.Context, teamID uuid.UUID) ([]OwnedDevice, error) {
	if err := s.mustHaveTeam(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.queries.DeviceListAny(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", translate(err))
	}
	return convertAll(rows, func(row *db.DeviceListAnyRow) (OwnedDevice, error) {
		get := db.DeviceGetAnyRow(*row)
		return ownedDevice(&get)
	})
}

// ReplaceHardware puts another unit into a device from an instant on, and takes
// the one that sat there out. Readings that are stored stay where they are.
func (s *Store) ReplaceHardware(
	ctx context.Context, deviceID uuid.UUID, hardwareID string, at time.Time,
) (changed OwnedDevice, err error) {
	err = s.inTx(ctx, "replacing a unit", func(tx pgx.Tx) error {
		last, err := s.lockHardware(ctx, tx, deviceID)
		if err != nil {
			return err
		}
		sitsThere := last != nil && last.RemovedAt == nil
		if sitsThere && last.HardwareID == hardwareID {
			return refused("Unit %s sits in device %s already.", hardwareID, deviceID)
		}
		if sitsThere {
			if err := s.takeOut(ctx, tx, deviceID, last, at); err != nil {
				return err
			}
		}
		if err := s.install(ctx, tx, deviceID, hardwareID, &at); err != nil {
			return err
		}
		err = s.queries.DeviceSetHardware(ctx, tx, db.DeviceSetHardwareParams{DeviceID: deviceID, HardwareID: hardwareID})
		if err != nil {
			return err
		}
		changed, err = s.ownedDevice(ctx, tx, deviceID)
		return err
	})
	return changed, err
}

// RemoveHardware takes the unit out of a device at an instant. The device goes
// on showing it as its last one (decision 40).
func (s *Store) RemoveHardware(ctx context.Context, deviceID uuid.UUID, at time.Time) (changed OwnedDevice, err error) {
	err = s.inTx(ctx, "removing a unit", func(tx pgx.Tx) error {
		last, err := s.lockHardware(ctx, tx, deviceID)
		if err != nil {
			return err
		}
		if last == nil || last.RemovedAt != nil {
			return refused("No unit sits in device %s. Put one in: roomsensor device replace-hardware %s --hardware-id dev:...",
				deviceID, deviceID)
		}
		if err := s.takeOut(ctx, tx, deviceID, last, at); err != nil {
			return err
		}
		changed, err = s.ownedDevice(ctx, tx, deviceID)
		return err
	})
	return changed, err
}

func (s *Store) takeOut(
	ctx context.Context, tx pgx.Tx, deviceID uuid.UUID, last *db.DeviceHardwareLastRow, at time.Time,
) error {
	if last.InstalledAt != nil && !at.After(*last.InstalledAt) {
		return refused("Unit %s sits in device %s since %s. Choose a later time.",
			last.HardwareID, deviceID, roomsensor.FormatTime(*last.InstalledAt))
	}
	return s.queries.HardwareRemove(ctx, tx, db.HardwareRemoveParams{DeviceID: deviceID, RemovedAt: at})
}

// lockHardware locks a device and finds its last unit; nil when it never had one.
func (s *Store) lockHardware(ctx context.Context, tx pgx.Tx, deviceID uuid.UUID) (*db.DeviceHardwareLastRow, error) {
	if _, err := s.queries.DeviceLockAny(ctx, tx, deviceID); err != nil {
		return nil, orUnknownDevice(err, deviceID)
	}
	last, err := s.queries.DeviceHardwareLast(ctx, tx, deviceID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // A device that was put there by SQL may never have had a unit.
	}
	return &last, err
}

func (s *Store) ownedDevice(ctx context.Context, conn db.DBTX, deviceID uuid.UUID) (OwnedDevice, error) {
	row, err := s.queries.DeviceGetAny(ctx, conn, deviceID)
	if err != nil {
		return OwnedDevice{}, orUnknownDevice(err, deviceID)
	}
	return ownedDevice(&row)
}

func ownedDevice(row *db.DeviceGetAnyRow) (OwnedDevice, error) {
	d, err := device(&db.DeviceGetRow{
		ID: row.ID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, Metadata: row.Metadata, LastSeenAt: row.LastSeenAt,
		RssiDbm: row.RssiDbm, SignalBars: row.SignalBars,
		AssignmentID: row.AssignmentID, Label: row.Label, StartedAt: row.StartedAt, ExternalRef: row.ExternalRef,
	})
	return OwnedDevice{Device: d, TeamID: row.TeamID}, err
}

func orUnknownDevice(err error, deviceID uuid.UUID) error {
	return orUnknown(err, "reading a device",
		"There is no device %s. roomsensor device list --team ID shows a team's devices.", deviceID)
}

// orUnknown says with a sentence that something was not found; every other
// error stays what it is.
func orUnknown(err error, doing, format string, args ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return refused(format, args...)
	}
	return fmt.Errorf("%s: %w", doing, translate(err))
}
