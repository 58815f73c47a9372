package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

type deviceCmd struct {
	Create          deviceCreateCmd          `cmd:"" help:"Create a device with a unit in it."`
	List            deviceListCmd            `cmd:"" help:"List the devices of a team."`
	Show            deviceShowCmd            `cmd:"" help:"Show a device."`
	Rename          deviceRenameCmd          `cmd:"" help:"Rename a device."`
	SetSampling     deviceSetSamplingCmd     `cmd:"" help:"Say what becomes of the measurements of a device that arrive from now on."`
	SetRetention    deviceSetRetentionCmd    `cmd:"" help:"Set the age at which the readings of a device are deleted."`
	Retire          deviceRetireCmd          `cmd:"" help:"Take a device out of use: it leaves lists and counts, its readings stay."`
	Delete          deviceDeleteCmd          `cmd:"" help:"Delete a device with its readings and assignments permanently."`
	ReplaceHardware deviceReplaceHardwareCmd `cmd:"" help:"Install another unit in a device. Stored readings stay with the device."`
	RemoveHardware  deviceRemoveHardwareCmd  `cmd:"" help:"Remove the unit from a device."`
}

// newUnit are the flags that name the unit to install, by one of its names.
type newUnit struct {
	HardwareID cli.HardwareID `help:"Hardware id of the unit: dev: and 1 to 20 digits." name:"hardware-id" placeholder:"dev:N" required:"" xor:"unit"`
	Alias      alias          `help:"Name with which the unit's sender sends it, such as a84041b9d1c2f3e4. The service gives the unit a hardware id." placeholder:"NAME" required:"" xor:"unit"`
}

// unit returns the name of the unit.
func (u *newUnit) unit() string {
	if u.Alias != "" {
		return string(u.Alias)
	}
	return string(u.HardwareID)
}

type deviceCreateCmd struct {
	ofTeam
	newUnit
	Name        *cli.Name    `help:"Display name." implied:"none" placeholder:"NAME"`
	Metadata    cli.Metadata `help:"Metadata entry; can be repeated." placeholder:"KEY=VALUE" sep:"none"`
	InstalledAt *cli.Instant `help:"Installation time." implied:"unbounded for a unit never installed before, otherwise now" placeholder:"TIME"`
	Sampling    *string      `enum:"whole,mean" help:"What the reading of 5 minutes is: whole, the last measurement, or mean, the mean of all." implied:"that of the source, or whole" placeholder:"SAMPLING"`
	Source      *cli.Name    `help:"Id or name of the source whose format decides the sampling." implied:"none" placeholder:"SOURCE"`
}

// Run creates a device.
func (c *deviceCreateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		device := roomsensor.NewDevice{
			TeamID: team, HardwareID: c.unit(), DisplayName: c.Name.Optional(),
			Metadata: c.Metadata, InstalledAt: c.InstalledAt.Optional(),
		}
		switch {
		case c.Sampling != nil:
			device.Sampling = roomsensor.Sampling(*c.Sampling)
		case c.Source != nil:
			s, err := o.FindSource(ctx, new(team.String()), string(*c.Source))
			if err != nil {
				return nil, err
			}
			device.Sampling = source.SamplingOf(&s)
		}
		return o.CreateDevice(ctx, device)
	})
}

type deviceListCmd struct {
	ofTeam
	Retired bool `help:"List the retired devices instead."`
}

// Run lists the devices of a team.
func (c *deviceListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.Devices(ctx, team, c.Retired)
	})
}

// ofDevice are the flags of a command for one device.
type ofDevice struct {
	onDatabase
	Device cli.Name  `arg:"" help:"Id or name of the device, or the hardware id of the unit that is installed in it."`
	Team   *cli.Name `help:"Name or id of the device's team." implied:"all teams" placeholder:"TEAM"`
}

// operateDevice is operate for a command that names a device.
func operateDevice(
	ctx context.Context, t *cli.Terminal, c ofDevice, do func(o *admin.Operator, device uuid.UUID) (object any, err error),
) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		id, err := o.FindDevice(ctx, c.Team.Optional(), string(c.Device))
		if err != nil {
			return nil, err
		}
		return do(o, id)
	})
}

type deviceShowCmd struct{ ofDevice }

// Run shows a device.
func (c *deviceShowCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.Device(ctx, device)
	})
}

type deviceRenameCmd struct {
	ofDevice
	Name cli.Name `help:"New display name." placeholder:"NAME" required:""`
}

// Run renames a device.
func (c *deviceRenameCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.RenameDevice(ctx, device, string(c.Name))
	})
}

type deviceSetSamplingCmd struct {
	ofDevice
	Sampling string `arg:"" enum:"whole,mean" help:"What the reading of 5 minutes is: whole, the last measurement, or mean, the mean of all."`
}

// Run changes the sampling of a device.
func (c *deviceSetSamplingCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.SetSampling(ctx, device, roomsensor.Sampling(c.Sampling))
	})
}

type deviceSetRetentionCmd struct {
	ofDevice
	cli.Confirmation
	Keep retention `arg:"" help:"How long readings are kept, such as 90d, or none for that of the team."`
}

// Help returns the part of --help about what a retention does.
func (*deviceSetRetentionCmd) Help() string { return retentionHelp }

// Run changes the retention of a device.
func (c *deviceSetRetentionCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return setRetention(ctx, t, c.Confirmation, device, c.Keep, o.PreviewRetention, o.SetRetention)
	})
}

type deviceRetireCmd struct{ ofDevice }

// Help returns the part of --help about what else changes.
func (*deviceRetireCmd) Help() string {
	return `The open assignment ends and the unit is removed, so that its later uploads become rejects. To bring the ` +
		`device back, install a unit (device replace-hardware) or start an assignment.`
}

// Run retires a device.
func (c *deviceRetireCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.RetireDevice(ctx, device)
	})
}

type deviceDeleteCmd struct {
	ofDevice
	cli.Confirmation
}

// Help returns the part of --help about how it deletes.
func (*deviceDeleteCmd) Help() string {
	return `The command lists what it deletes and asks before it does. It works in short transactions: run it again if ` +
		`it was interrupted, and it deletes the rest. Later uploads of the unit become rejects.`
}

// Run deletes a device.
func (c *deviceDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		contents, err := o.DeviceContents(ctx, device)
		if err != nil {
			return nil, err
		}
		if err := t.ConfirmDeletion(ctx, c.Confirmation, "device", contents); err != nil {
			return nil, err
		}
		return o.DeleteDevice(ctx, device)
	})
}

type deviceReplaceHardwareCmd struct {
	ofDevice
	newUnit
	At *cli.Instant `help:"Installation time." implied:"now" placeholder:"TIME"`
}

// Run installs another unit in a device.
func (c *deviceReplaceHardwareCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.ReplaceHardware(ctx, device, c.unit(), c.At.Optional())
	})
}

type deviceRemoveHardwareCmd struct {
	ofDevice
	At *cli.Instant `help:"Removal time." implied:"now" placeholder:"TIME"`
}

// Run removes the unit from a device.
func (c *deviceRemoveHardwareCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.RemoveHardware(ctx, device, c.At.Optional())
	})
}
