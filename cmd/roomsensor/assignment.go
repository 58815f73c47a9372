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
	Move     assignmentMoveCmd     `cmd:"" help:"Move an athlete to another device."`
	Edit     assignmentEditCmd     `cmd:"" help:"Correct an assignment, also one that has ended."`
	End      assignmentEndCmd      `cmd:"" help:"End an assignment."`
	Delete   assignmentDeleteCmd   `cmd:"" help:"Delete an assignment that never was. The readings of the device stay."`
	List     assignmentListCmd     `cmd:"" help:"List the assignments of a device, newest first."`
}

// planFlags are the flags of commands that change assignments.
type planFlags struct {
	cli.Confirmation
	DryRun bool `help:"Show what would change, night by night, and change nothing."`
}

// Help returns the part of --help about the confirmation.
func (*planFlags) Help() string {
	return `The command shows what would change and asks before it starts an assignment more than 30 days in the ` +
		`past, or one of an athlete who has an open assignment of another device.`
}

// carryOut carries out a plan, unless this is a dry run. It asks before if the plan has warnings, or if it must ask.
// view returns the result of the command.
func (f *planFlags) carryOut(
	ctx context.Context, t *cli.Terminal, o *admin.Operator, plan admin.AssignmentPlan, mustAsk bool,
	view func(admin.ChangedAssignments) any,
) (any, error) {
	if f.DryRun || !f.Yes {
		preview, err := o.PreviewAssignments(ctx, plan)
		if err != nil || f.DryRun {
			return preview, err
		}
		if mustAsk || len(preview.Warnings) > 0 {
			if err := t.ConfirmChange(ctx, f.Confirmation, "This changes assignments:", preview); err != nil {
				return nil, err
			}
		}
	}
	changed, err := o.ChangeAssignments(ctx, plan)
	if err != nil {
		return nil, err
	}
	return view(changed), nil
}

// reasonFlag is the flag of commands that correct assignments.
type reasonFlag struct {
	Reason *cli.Name `help:"Why, for the audit log." implied:"none" placeholder:"TEXT"`
}

type assignmentStartCmd struct {
	ofDevice
	assignmentFlags
	planFlags
}

// assignmentFlags describe a new assignment.
type assignmentFlags struct {
	Type         string       `enum:"place,athlete" help:"What the device tracks: place or athlete." placeholder:"TYPE" required:""`
	Label        cli.Name     `help:"Name of the athlete or the room." placeholder:"LABEL" required:""`
	HomeOrTravel string       `default:"home" enum:"home,travel" help:"Location of the device: home or travel." placeholder:"WHERE"`
	ExternalRef  *cli.Name    `help:"Id of the athlete or room in another system." implied:"none" placeholder:"REF"`
	At           *cli.Instant `help:"Start time." implied:"now" placeholder:"TIME"`
}

// Run starts an assignment.
func (c *assignmentStartCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		plan, err := o.StartAssignment(ctx, c.assignment(device), c.At.Optional())
		if err != nil {
			return nil, err
		}
		return c.carryOut(ctx, t, o, plan, false, newest)
	})
}

// newest returns the assignment that a change started, or that it changed.
func newest(c admin.ChangedAssignments) any { return c.After[len(c.After)-1] }

func (c *assignmentFlags) assignment(device uuid.UUID) roomsensor.Assignment {
	return roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.AssignmentType(c.Type), Label: string(c.Label),
		HomeOrTravel: roomsensor.HomeOrTravel(c.HomeOrTravel), ExternalRef: c.ExternalRef.Optional(),
	}
}

type assignmentTransferCmd struct {
	onDatabase
	assignmentFlags
	planFlags
	AssignmentID cli.ID `arg:"" help:"Id of the open assignment."`
}

// Run transfers an assignment.
func (c *assignmentTransferCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		plan, err := o.TransferAssignment(ctx, uuid.UUID(c.AssignmentID), c.assignment(uuid.Nil), c.At.Optional())
		if err != nil {
			return nil, err
		}
		return c.carryOut(ctx, t, o, plan, false, func(changed admin.ChangedAssignments) any {
			return admin.TransferredAssignment{Assignment: changed.After[1], Replaces: changed.After[0]}
		})
	})
}

type assignmentMoveCmd struct {
	onDatabase
	planFlags
	reasonFlag
	AssignmentID cli.ID       `arg:"" help:"Id of the athlete's open assignment."`
	To           cli.Name     `help:"Id or name of the device of the new room, or the hardware id of its unit." placeholder:"DEVICE" required:""`
	Team         *cli.Name    `help:"Name or id of the device's team." implied:"all teams" placeholder:"TEAM"`
	At           *cli.Instant `help:"Time of the move." implied:"now" placeholder:"TIME"`
	IfOccupied   string       `default:"" enum:",swap,end" help:"If the device has an open assignment: swap its athlete to the old device, or end the assignment." implied:"refuse the move" placeholder:"ACTION"`
	OldRoom      *cli.Name    `help:"Label with which the old device starts as a place." implied:"no assignment" placeholder:"LABEL"`
}

// Run moves a person.
func (c *assignmentMoveCmd) Run(ctx context.Context, t *cli.Terminal) error {
	device := ofDevice{c.onDatabase, c.To, c.Team}
	return operateDevice(ctx, t, device, func(o *admin.Operator, device uuid.UUID) (any, error) {
		plan, err := o.MoveAssignment(ctx, uuid.UUID(c.AssignmentID), admin.MoveOptions{
			To: device, At: c.At.Optional(), IfOccupied: c.IfOccupied, OldRoom: c.OldRoom.Optional(),
		})
		if err != nil {
			return nil, err
		}
		return c.carryOut(ctx, t, o, plan.WithReason(c.Reason.Optional()), false,
			func(changed admin.ChangedAssignments) any { return changed })
	})
}

type assignmentEditCmd struct {
	onDatabase
	planFlags
	reasonFlag
	AssignmentID  cli.ID       `arg:"" help:"Id of the assignment."`
	Type          string       `default:"" enum:",place,athlete" help:"What the device tracked: place or athlete." implied:"unchanged" placeholder:"TYPE"`
	Label         *cli.Name    `help:"Name of the athlete or the room." implied:"unchanged" placeholder:"LABEL"`
	HomeOrTravel  string       `default:"" enum:",home,travel" help:"Location of the device: home or travel." implied:"unchanged" placeholder:"WHERE"`
	ExternalRef   *cli.Name    `help:"Id of the athlete or room in another system." implied:"unchanged" placeholder:"REF" xor:"ref"`
	NoExternalRef bool         `help:"Remove the id in another system." xor:"ref"`
	StartedAt     *cli.Instant `help:"Start time." implied:"unchanged" placeholder:"TIME"`
	EndedAt       *cli.Instant `help:"End time." implied:"unchanged" placeholder:"TIME" xor:"end"`
	NoEnd         bool         `help:"Remove the end, so that the assignment is open." xor:"end"`
}

// Run edits an assignment.
func (c *assignmentEditCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		plan, err := o.EditAssignment(ctx, uuid.UUID(c.AssignmentID), admin.AssignmentEdit{
			Type:         unlessEmpty(roomsensor.AssignmentType(c.Type)),
			HomeOrTravel: unlessEmpty(roomsensor.HomeOrTravel(c.HomeOrTravel)), Label: c.Label.Optional(),
			ExternalRef: c.ExternalRef.Optional(), WithoutRef: c.NoExternalRef,
			StartedAt: c.StartedAt.Optional(), EndedAt: c.EndedAt.Optional(), WithoutEnd: c.NoEnd,
		})
		if err != nil {
			return nil, err
		}
		return c.carryOut(ctx, t, o, plan.WithReason(c.Reason.Optional()), false, newest)
	})
}

// unlessEmpty returns nil for an empty value of a flag.
func unlessEmpty[T ~string](value T) *T {
	if value == "" {
		return nil
	}
	return &value
}

type assignmentEndCmd struct {
	onDatabase
	AssignmentID cli.ID       `arg:"" help:"Id of the assignment."`
	At           *cli.Instant `help:"End time." implied:"now" placeholder:"TIME"`
}

// Run ends an assignment.
func (c *assignmentEndCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		plan, err := o.EndAssignment(ctx, uuid.UUID(c.AssignmentID), c.At.Optional())
		if err != nil {
			return nil, err
		}
		changed, err := o.ChangeAssignments(ctx, plan)
		if err != nil {
			return nil, err
		}
		return newest(changed), nil
	})
}

type assignmentDeleteCmd struct {
	onDatabase
	planFlags
	reasonFlag
	AssignmentID cli.ID `arg:"" help:"Id of the assignment."`
}

// Help returns the part of --help about the confirmation.
func (*assignmentDeleteCmd) Help() string {
	return `The command shows what would change and asks before it does. To end an assignment now, use assignment end.`
}

// Run deletes an assignment.
func (c *assignmentDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		plan, err := o.DeleteAssignment(ctx, uuid.UUID(c.AssignmentID))
		if err != nil {
			return nil, err
		}
		return c.carryOut(ctx, t, o, plan.WithReason(c.Reason.Optional()), true,
			func(changed admin.ChangedAssignments) any { return changed.Before[0] })
	})
}

type assignmentListCmd struct{ ofDevice }

// Run lists the assignments of a device.
func (c *assignmentListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		return o.Assignments(ctx, device)
	})
}
