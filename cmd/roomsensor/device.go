package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type deviceCmd struct {
	Create          deviceCreateCmd          `cmd:"" help:"Make a device with a unit in it."`
	List            deviceListCmd            `cmd:"" help:"List the devices of a team."`
	ReplaceHardware deviceReplaceHardwareCmd `cmd:"" help:"Put another unit into a device; what is stored stays where it is."`
	RemoveHardware  deviceRemoveHardwareCmd  `cmd:"" help:"Take the unit out of a device."`
}

type deviceCreateCmd struct {
	config.Database
	Team        id         `help:"Id of the team." placeholder:"ID" required:""`
	HardwareID  hardwareID `help:"Serial of the unit, dev: and 1 to 20 digits." name:"hardware-id" placeholder:"dev:N" required:""`
	Name        *name      `help:"Display name." placeholder:"NAME"`
	Metadata    []tag      `help:"A tag; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
	InstalledAt *instant   `help:"Since when the unit sits in the device; since ever for a unit that was never installed, else now." placeholder:"TIME"`
}

// Run carries the command out.
func (c *deviceCreateCmd) Run(ctx context.Context, t *terminal) error {
	metadata, err := tags(c.Metadata)
	if err != nil {
		return err
	}
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Device, error) {
		return o.CreateDevice(ctx, app.DeviceOptions{
			TeamID: uuid.UUID(c.Team), HardwareID: string(c.HardwareID), DisplayName: c.Name.optional(),
			Metadata: metadata, InstalledAt: c.InstalledAt.optional(),
		})
	})
}

type deviceListCmd struct {
	config.Database
	Team id `help:"Id of the team." placeholder:"ID" required:""`
}

// Run carries the command out.
func (c *deviceListCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.Device], error) {
		return o.Devices(ctx, uuid.UUID(c.Team))
	})
}

type deviceReplaceHardwareCmd struct {
	config.Database
	DeviceID   id         `arg:"" help:"Id of the device."`
	HardwareID hardwareID `help:"Serial of the unit that comes in." name:"hardware-id" placeholder:"dev:N" required:""`
	At         *instant   `help:"When it came in; now by default." placeholder:"TIME"`
}

// Run carries the command out.
func (c *deviceReplaceHardwareCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Device, error) {
		return o.ReplaceHardware(ctx, uuid.UUID(c.DeviceID), string(c.HardwareID), c.At.optional())
	})
}

type deviceRemoveHardwareCmd struct {
	config.Database
	DeviceID id       `arg:"" help:"Id of the device."`
	At       *instant `help:"When the unit came out; now by default." placeholder:"TIME"`
}

// Run carries the command out.
func (c *deviceRemoveHardwareCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Device, error) {
		return o.RemoveHardware(ctx, uuid.UUID(c.DeviceID), c.At.optional())
	})
}
