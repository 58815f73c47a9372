package admin

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
)

// CreateDevice creates a device with a unit in it.
func (o *Operator) CreateDevice(ctx context.Context, d roomsensor.NewDevice) (Device, error) {
	if _, err := o.effectiveTime("installed-at", d.InstalledAt); err != nil {
		return Device{}, err
	}
	device, err := o.store.CreateDevice(ctx, d, o.timestamp())
	return o.device(ctx, &device, err)
}

// device returns what a command prints after a change of a device, or the error that the operator sees.
func (o *Operator) device(ctx context.Context, d *fleet.OwnedDevice, err error) (Device, error) {
	if err != nil {
		return Device{}, o.explain(ctx, err)
	}
	views, err := o.viewDevices(ctx, d.TeamID, []fleet.OwnedDevice{*d})
	if err != nil {
		return Device{}, err
	}
	return views[0], nil
}

// viewDevices returns devices of a team with the aliases of their units.
func (o *Operator) viewDevices(ctx context.Context, teamID uuid.UUID, devices []fleet.OwnedDevice) ([]Device, error) {
	units := make([]string, len(devices))
	for i := range devices {
		units[i] = devices[i].HardwareID
	}
	aliases, err := o.store.Aliases(ctx, teamID, units)
	if err != nil {
		return nil, o.explain(ctx, err)
	}
	samplings, err := o.store.Samplings(ctx, teamID)
	if err != nil {
		return nil, o.explain(ctx, err)
	}
	retentions, err := o.store.Retentions(ctx, teamID)
	if err != nil {
		return nil, o.explain(ctx, err)
	}
	views, now := make([]Device, len(devices)), o.now()
	for i := range devices {
		views[i] = viewDevice(&devices[i], now)
		views[i].Sampling = cmp.Or(samplings[devices[i].ID], roomsensor.SamplingWhole)
		if days, ok := retentions[devices[i].ID]; ok {
			views[i].KeepDays = &days
		}
		if alias, ok := aliases[devices[i].HardwareID]; ok {
			views[i].Alias = &alias
		}
	}
	return views, nil
}

// Devices lists the devices of a team that are retired, or those that are not, ordered by id.
func (o *Operator) Devices(ctx context.Context, teamID uuid.UUID, retired bool) (List[Device], error) {
	devices, err := o.store.TeamDevices(ctx, teamID, retired)
	if err != nil {
		return List[Device]{}, o.explain(ctx, err)
	}
	views, err := o.viewDevices(ctx, teamID, devices)
	return List[Device]{views}, err
}

// Device returns a device.
func (o *Operator) Device(ctx context.Context, deviceID uuid.UUID) (Device, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	return o.device(ctx, &device, err)
}

// RenameDevice changes the display name of a device.
func (o *Operator) RenameDevice(ctx context.Context, deviceID uuid.UUID, displayName string) (Device, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		patch := roomsensor.DevicePatch{SetDisplayName: true, DisplayName: &displayName}
		device.Device, err = o.store.UpdateDevice(ctx, device.TeamID, deviceID, patch)
	}
	return o.device(ctx, &device, err)
}

// ReplaceHardware installs another unit in a device at a time; nil is now. Stored readings stay with their device.
func (o *Operator) ReplaceHardware(
	ctx context.Context, deviceID uuid.UUID, hardwareID string, at *time.Time,
) (Device, error) {
	when, err := o.effectiveTime("at", at)
	if err != nil {
		return Device{}, err
	}
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		device.Device, err = o.store.ReplaceHardware(ctx, device.TeamID, deviceID, hardwareID, when)
	}
	return o.device(ctx, &device, err)
}

// RemoveHardware removes the unit from a device at a time; nil is now.
func (o *Operator) RemoveHardware(ctx context.Context, deviceID uuid.UUID, at *time.Time) (Device, error) {
	when, err := o.effectiveTime("at", at)
	if err != nil {
		return Device{}, err
	}
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		device.Device, err = o.store.RemoveHardware(ctx, device.TeamID, deviceID, when)
	}
	return o.device(ctx, &device, err)
}

// SetSampling changes what becomes of the measurements of a device that arrive afterwards (A13.4).
func (o *Operator) SetSampling(ctx context.Context, deviceID uuid.UUID, sampling roomsensor.Sampling) (Device, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		err = o.store.SetSampling(ctx, device.TeamID, deviceID, sampling)
	}
	return o.device(ctx, &device, err)
}

// RetireDevice takes a device out of use now. Its readings stay. Another unit or assignment brings it back.
func (o *Operator) RetireDevice(ctx context.Context, deviceID uuid.UUID) (Device, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		device.Device, err = o.store.RetireDevice(ctx, device.TeamID, deviceID, o.timestamp())
	}
	return o.device(ctx, &device, err)
}
