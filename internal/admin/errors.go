package admin

import (
	"context"
	"errors"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

// explain returns the error that the operator sees: a sentence that says what to do, if the cause is known.
func (o *Operator) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return process.ErrInterrupted
	}
	if refused := explainRefusal(err); refused != nil {
		return refused
	}
	return process.ExplainDatabase(ctx, o.url, err)
}

// explainRefusal words the errors of the store that say that a command contradicts what is stored; nil for other
// errors.
func explainRefusal(err error) error {
	if refused, ok := errors.AsType[process.RefusedError](err); ok {
		return refused
	}
	if missing, ok := errors.AsType[*roomsensor.NotFoundError](err); ok {
		return process.Refusef(notFoundSentences[missing.Kind], missing.ID)
	}
	if conflict, ok := errors.AsType[*roomsensor.HardwareConflictError](err); ok {
		return explainHardware(conflict)
	}
	if conflict, ok := errors.AsType[*roomsensor.AssignmentConflictError](err); ok {
		return explainAssignment(conflict)
	}
	if errors.Is(err, roomsensor.ErrTooManyDeletions) {
		return process.Refusef("The team has %d deletions of readings in the last %d days, which is the most.",
			roomsensor.MaxDeletions, int(roomsensor.FeedKeep.Hours()/24))
	}
	if _, ok := errors.AsType[*roomsensor.TooManySourcesError](err); ok {
		return process.Refusef("The team has %d sources, which is the most. Delete one that is not used.",
			roomsensor.MaxSources)
	}
	if taken, ok := errors.AsType[*roomsensor.SourceExistsError](err); ok {
		return process.Refusef("The team has a source with the name %q. Choose another name.", taken.Name)
	}
	return nil
}

// notFoundSentences contains the sentence for an id that does not exist, and the command that lists those that do.
var notFoundSentences = map[roomsensor.Kind]string{
	roomsensor.KindTeam:       "There is no team %s. roomsensor team list shows them.",
	roomsensor.KindAPIKey:     "There is no API key %s. roomsensor key list --team TEAM shows a team's keys.",
	roomsensor.KindIngestKey:  "There is no upload credential %s. roomsensor ingest-key list --team TEAM shows a team's.",
	roomsensor.KindDevice:     "There is no device %s. roomsensor device list --team TEAM shows a team's devices.",
	roomsensor.KindAssignment: "There is no assignment %s. roomsensor assignment list DEVICE shows a device's.",
	roomsensor.KindUser:       "There is no person with the email address %s. roomsensor user list shows them.",
	roomsensor.KindReject:     "There is no reject %s. roomsensor rejects list shows them.",
	roomsensor.KindSource:     "There is no source %s. roomsensor source list --team TEAM shows a team's.",
}

func explainHardware(c *roomsensor.HardwareConflictError) error {
	switch c.Conflict {
	case roomsensor.HardwareInstalled:
		if c.To != nil {
			return process.Refusef("Unit %s was installed in device %s until %s. Choose that time or a later one.",
				c.HardwareID, c.DeviceID, roomsensor.FormatTime(*c.To))
		}
		return process.Refusef(
			"Unit %s is installed in device %s. Remove it first: roomsensor device remove-hardware %s.",
			c.HardwareID, c.DeviceID, c.DeviceID)
	case roomsensor.HardwareJustInstalled:
		return process.Refusef("Unit %s was just installed in another device. roomsensor device list shows which.",
			c.HardwareID)
	case roomsensor.HardwareAlreadyThere:
		return process.Refusef("Unit %s is already installed in device %s.", c.HardwareID, c.DeviceID)
	case roomsensor.HardwareReplacedLater:
		return process.Refusef("Device %s had another unit at that time or later. Choose a later time.", c.DeviceID)
	case roomsensor.HardwareInstalledLater:
		return process.Refusef("Unit %s was installed in device %s at %s. Choose a later time.",
			c.HardwareID, c.DeviceID, roomsensor.FormatTime(*c.From))
	case roomsensor.HardwareNotInstalled:
		return process.Refusef(
			"No unit is installed in device %s. Install one: roomsensor device replace-hardware %s --hardware-id dev:...",
			c.DeviceID, c.DeviceID)
	}
	return c
}

func explainAssignment(c *roomsensor.AssignmentConflictError) error {
	a := &c.Assignment
	started := roomsensor.FormatTime(a.StartedAt)
	switch c.Conflict {
	case roomsensor.AssignmentOverlaps:
		if a.EndedAt != nil {
			return process.Refusef("Device %s had the assignment %s from %s until %s. Choose times before or after it.",
				a.DeviceID, a.ID, started, roomsensor.FormatTime(*a.EndedAt))
		}
		return process.Refusef(
			"Device %s has the open assignment %s since %s. End it first: roomsensor assignment end %s.",
			a.DeviceID, a.ID, started, a.ID)
	case roomsensor.AssignmentEnded:
		return process.Refusef("Assignment %s already ended at %s.", a.ID, roomsensor.FormatTime(*a.EndedAt))
	case roomsensor.AssignmentStartedLater:
		return process.Refusef("Assignment %s started at %s. Choose a later end.", a.ID, started)
	case roomsensor.AssignmentChanged:
		return process.Refusef("Assignment %s changed meanwhile. Run the command again.", a.ID)
	}
	return c
}
