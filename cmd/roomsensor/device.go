package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
)

type deviceCmd struct {
	Create          deviceCreateCmd          `cmd:"" help:"Create a device with a unit in it."`
	List            deviceListCmd            `cmd:"" help:"List the devices of a team."`
	ReplaceHardware deviceReplaceHardwareCmd `cmd:"" help:"Install another unit in a device. Stored readings stay with the device."`
	RemoveHardware  deviceRemoveHardwareCmd  `cmd:"" help:"Remove the unit from a device."`
}

type deviceCreateCmd struct {
	ofTeam
	HardwareID  hardwareID `help:"Hardware id of the unit: dev: and 1 to 20 digits." name:"hardware-id" placeholder:"dev:N" required:""`
	Name        *name      `help:"Display name." placeholder:"NAME"`
	Metadata    []tag      `help:"Metadata entry; can be repeated." placeholder:"KEY=VALUE" sep:"none"`
	InstalledAt *instant   `help:"Installation time." implied:"unbounded for a unit never installed before, otherwise now" placeholder:"TIME"`
}

// Run creates a device.
func (c *deviceCreateCmd) Run(ctx context.Context, t *terminal) error {
	metadata, err := metadataOf(c.Metadata)
	if err != nil {
		return err
	}
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.CreateDevice(ctx, admin.DeviceOptions{
			TeamID: uuid.UUID(c.Team), HardwareID: string(c.HardwareID), DisplayName: c.Name.optional(),
			Metadata: metadata, InstalledAt: c.InstalledAt.optional(),
		})
	})
}

type deviceListCmd struct{ ofTeam }

// Run lists the devices of a team.
func (c *deviceListCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) { return o.Devices(ctx, uuid.UUID(c.Team)) })
}

type deviceReplaceHardwareCmd struct {
	config.Database
	DeviceID   id         `arg:"" help:"Id of the device."`
	HardwareID hardwareID `help:"Hardware id of the new unit." name:"hardware-id" placeholder:"dev:N" required:""`
	At         *instant   `help:"Installation time." implied:"now" placeholder:"TIME"`
}

// Run installs another unit in a device.
func (c *deviceReplaceHardwareCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.ReplaceHardware(ctx, uuid.UUID(c.DeviceID), string(c.HardwareID), c.At.optional())
	})
}

type deviceRemoveHardwareCmd struct {
	config.Database
	DeviceID id       `arg:"" help:"Id of the device."`
	At       *instant `help:"Removal time." implied:"now" placeholder:"TIME"`
}

// Run removes the unit from a device.
func (c *deviceRemoveHardwareCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.RemoveHardware(ctx, uuid.UUID(c.DeviceID), c.At.optional())
	})
}
