package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

type assignmentCmd struct {
	Start    assignmentStartCmd    `cmd:"" help:"Start an assignment: the device tracks an athlete or a place."`
	Transfer assignmentTransferCmd `cmd:"" help:"End an assignment and start another one of its device at the same instant."`
	End      assignmentEndCmd      `cmd:"" help:"End an assignment."`
	List     assignmentListCmd     `cmd:"" help:"List the assignments of a device, newest first."`
}

type assignmentStartCmd struct {
	ofDevice
	assignmentFlags
}

// assignmentFlags describe a new assignment.
type assignmentFlags struct {
	Type         string       `enum:"place,athlete" help:"What the device tracks: place or athlete." placeholder:"TYPE" required:""`
	Label        name         `help:"Name of the athlete or the room." placeholder:"LABEL" required:""`
	HomeOrTravel string       `default:"home" enum:"home,travel" help:"Location of the device: home or travel." placeholder:"WHERE"`
	ExternalRef  *name        `help:"Id of the athlete or room in another system." implied:"none" placeholder:"REF"`
	At           *cli.Instant `help:"Start time." implied:"now" placeholder:"TIME"`
}

// Run starts an assignment.
func (c *assignmentStartCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.StartAssignment(ctx, c.options(device))
	})
}

func (c *assignmentFlags) options(device uuid.UUID) admin.AssignmentOptions {
	return admin.AssignmentOptions{
		DeviceID: device, Type: roomsensor.AssignmentType(c.Type), Label: string(c.Label),
		HomeOrTravel: roomsensor.HomeOrTravel(c.HomeOrTravel), ExternalRef: c.ExternalRef.optional(), At: c.At.Optional(),
	}
}

type assignmentTransferCmd struct {
	onDatabase
	assignmentFlags
	AssignmentID id `arg:"" help:"Id of the open assignment."`
}

// Run transfers an assignment.
func (c *assignmentTransferCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.TransferAssignment(ctx, uuid.UUID(c.AssignmentID), c.options(uuid.Nil))
	})
}

type assignmentEndCmd struct {
	onDatabase
	AssignmentID id           `arg:"" help:"Id of the assignment."`
	At           *cli.Instant `help:"End time." implied:"now" placeholder:"TIME"`
}

// Run ends an assignment.
func (c *assignmentEndCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.EndAssignment(ctx, uuid.UUID(c.AssignmentID), c.At.Optional())
	})
}

type assignmentListCmd struct{ ofDevice }

// Run lists the assignments of a device.
func (c *assignmentListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.Assignments(ctx, device)
	})
}
