package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// DeviceOptions are what an operator says of a device to be.
type DeviceOptions struct {
	TeamID      uuid.UUID
	HardwareID  string
	DisplayName *string
	Metadata    map[string]string
	// InstalledAt is nil for the default: since ever for a unit that was never
	// installed, so that its buffered readings count, else now.
	InstalledAt *time.Time
}

// CreateDevice makes a device with a unit in it.
func (o *Operator) CreateDevice(ctx context.Context, d DeviceOptions) (Device, error) {
	if _, err := o.instant("installed-at", d.InstalledAt); err != nil {
		return Device{}, err
	}
	return o.device(ctx)(o.store.CreateDevice(ctx, store.NewDevice(d), o.current()))
}

// Devices lists the devices of a team by id.
func (o *Operator) Devices(ctx context.Context, teamID uuid.UUID) (List[Device], error) {
	devices, err := o.store.TeamDevices(ctx, teamID)
	now := o.now()
	return listOf(devices, func(d *store.OwnedDevice) Device { return viewDevice(d, now) }), o.explain(ctx, err)
}

// ReplaceHardware puts another unit into a device from an instant on, nil is
// now. Readings that are stored stay where they are.
func (o *Operator) ReplaceHardware(
	ctx context.Context, deviceID uuid.UUID, hardwareID string, at *time.Time,
) (Device, error) {
	when, err := o.instant("at", at)
	if err != nil {
		return Device{}, err
	}
	return o.device(ctx)(o.store.ReplaceHardware(ctx, deviceID, hardwareID, when))
}

// RemoveHardware takes the unit out of a device at an instant, nil is now.
func (o *Operator) RemoveHardware(ctx context.Context, deviceID uuid.UUID, at *time.Time) (Device, error) {
	when, err := o.instant("at", at)
	if err != nil {
		return Device{}, err
	}
	return o.device(ctx)(o.store.RemoveHardware(ctx, deviceID, when))
}

// device turns what the store says of a device into what is printed.
func (o *Operator) device(ctx context.Context) func(store.OwnedDevice, error) (Device, error) {
	return func(d store.OwnedDevice, err error) (Device, error) {
		return viewDevice(&d, o.now()), o.explain(ctx, err)
	}
}

// AssignmentOptions are what an operator says of a block that begins.
type AssignmentOptions struct {
	DeviceID     uuid.UUID
	Type         roomsensor.AssignmentType
	Label        string
	HomeOrTravel roomsensor.HomeOrTravel
	ExternalRef  *string
	At           *time.Time // nil is now
}

// StartAssignment opens a block of a device.
func (o *Operator) StartAssignment(ctx context.Context, a AssignmentOptions) (Assignment, error) {
	at, err := o.instant("at", a.At)
	if err != nil {
		return Assignment{}, err
	}
	started, err := o.store.StartAssignment(ctx, roomsensor.Assignment{
		DeviceID: a.DeviceID, Type: a.Type, Label: a.Label, HomeOrTravel: a.HomeOrTravel,
		ExternalRef: a.ExternalRef, StartedAt: at,
	})
	return viewAssignment(&started), o.explain(ctx, err)
}

// EndAssignment closes a block at an instant, nil is now.
func (o *Operator) EndAssignment(ctx context.Context, id uuid.UUID, at *time.Time) (Assignment, error) {
	when, err := o.instant("at", at)
	if err != nil {
		return Assignment{}, err
	}
	ended, err := o.store.EndAssignment(ctx, id, when)
	return viewAssignment(&ended), o.explain(ctx, err)
}

// Assignments lists every block of a device, newest first.
func (o *Operator) Assignments(ctx context.Context, deviceID uuid.UUID) (List[Assignment], error) {
	assignments, err := o.store.DeviceAssignments(ctx, deviceID)
	return listOf(assignments, viewAssignment), o.explain(ctx, err)
}
