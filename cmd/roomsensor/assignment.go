package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type assignmentCmd struct {
	Start assignmentStartCmd `cmd:"" help:"Begin a block in which a device tracks an athlete or a place."`
	End   assignmentEndCmd   `cmd:"" help:"End a block."`
	List  assignmentListCmd  `cmd:"" help:"List the blocks of a device, newest first."`
}

type assignmentStartCmd struct {
	config.Database
	DeviceID     id       `arg:"" help:"Id of the device."`
	Type         string   `enum:"place,athlete" help:"What is tracked: place or athlete." placeholder:"TYPE" required:""`
	Label        name     `help:"The athlete's or the room's name." placeholder:"LABEL" required:""`
	HomeOrTravel string   `default:"home" enum:"home,travel" help:"Where the device is set up: home or travel."`
	ExternalRef  *name    `help:"Id of the athlete or room in another system." placeholder:"REF"`
	At           *instant `help:"When the block began; now by default." placeholder:"TIME"`
}

// Run carries the command out.
func (c *assignmentStartCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Assignment, error) {
		return o.StartAssignment(ctx, app.AssignmentOptions{
			DeviceID: uuid.UUID(c.DeviceID), Type: roomsensor.AssignmentType(c.Type), Label: string(c.Label),
			HomeOrTravel: roomsensor.HomeOrTravel(c.HomeOrTravel), ExternalRef: c.ExternalRef.optional(),
			At: c.At.optional(),
		})
	})
}

type assignmentEndCmd struct {
	config.Database
	AssignmentID id       `arg:"" help:"Id of the assignment."`
	At           *instant `help:"When the block ended; now by default." placeholder:"TIME"`
}

// Run carries the command out.
func (c *assignmentEndCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Assignment, error) {
		return o.EndAssignment(ctx, uuid.UUID(c.AssignmentID), c.At.optional())
	})
}

type assignmentListCmd struct {
	config.Database
	DeviceID id `arg:"" help:"Id of the device."`
}

// Run carries the command out.
func (c *assignmentListCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.Assignment], error) {
		return o.Assignments(ctx, uuid.UUID(c.DeviceID))
	})
}
