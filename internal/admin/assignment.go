package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// AssignmentPlan is a change of the assignments of a team.
type AssignmentPlan struct {
	team   uuid.UUID
	change roomsensor.AssignmentChange
}

// WithReason returns the plan with a reason for the audit log; nil is none.
func (p AssignmentPlan) WithReason(reason *string) AssignmentPlan {
	if reason != nil {
		p.change.Reason = *reason
	}
	return p
}

// StartAssignment plans to start an assignment of a device at a time; nil is now.
func (o *Operator) StartAssignment(
	ctx context.Context, a roomsensor.Assignment, at *time.Time,
) (plan AssignmentPlan, err error) {
	if a.StartedAt, err = o.effectiveTime("at", at); err != nil {
		return plan, err
	}
	device, err := o.store.OwnedDevice(ctx, a.DeviceID)
	return AssignmentPlan{device.TeamID, roomsensor.StartAssignment(a)}, o.explain(ctx, err)
}

// EndAssignment plans to end an assignment at a time; nil is now.
func (o *Operator) EndAssignment(ctx context.Context, id uuid.UUID, at *time.Time) (AssignmentPlan, error) {
	when, err := o.effectiveTime("at", at)
	if err != nil {
		return AssignmentPlan{}, err
	}
	team, err := o.store.AssignmentTeam(ctx, id)
	return AssignmentPlan{team, roomsensor.EndAssignment(id, when)}, o.explain(ctx, err)
}

// TransferAssignment plans to end an assignment and start another one of its device at the same instant; nil is
// now. It ignores the DeviceID of next.
func (o *Operator) TransferAssignment(
	ctx context.Context, id uuid.UUID, next roomsensor.Assignment, at *time.Time,
) (plan AssignmentPlan, err error) {
	if next.StartedAt, err = o.effectiveTime("at", at); err != nil {
		return plan, err
	}
	team, stored, err := o.assignment(ctx, id)
	next.DeviceID = stored.DeviceID
	return AssignmentPlan{team, roomsensor.TransferAssignment(id, next)}, err
}

// AssignmentEdit is what changes of an assignment. A nil field stays as it is.
type AssignmentEdit struct {
	Type                   *roomsensor.AssignmentType
	Label                  *string
	HomeOrTravel           *roomsensor.HomeOrTravel
	ExternalRef            *string // empty for none
	StartedAt, EndedAt     *time.Time
	WithoutEnd, WithoutRef bool // the assignment becomes open, or loses its reference
}

// EditAssignment plans to change an assignment, which may have ended.
func (o *Operator) EditAssignment(ctx context.Context, id uuid.UUID, edit AssignmentEdit) (AssignmentPlan, error) {
	for flag, at := range map[string]*time.Time{"started-at": edit.StartedAt, "ended-at": edit.EndedAt} {
		if _, err := o.effectiveTime(flag, at); err != nil {
			return AssignmentPlan{}, err
		}
	}
	team, stored, err := o.assignment(ctx, id)
	next := stored
	set(&next.Type, edit.Type)
	set(&next.Label, edit.Label)
	set(&next.HomeOrTravel, edit.HomeOrTravel)
	set(&next.StartedAt, edit.StartedAt)
	if edit.ExternalRef != nil || edit.WithoutRef {
		next.ExternalRef = edit.ExternalRef
	}
	if edit.EndedAt != nil || edit.WithoutEnd {
		next.EndedAt = edit.EndedAt
	}
	return planEdit(team, &stored, &next), err
}

// set sets a field to a value, unless that is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// planEdit plans to replace a stored assignment; next is nil for a deletion.
func planEdit(team uuid.UUID, stored, next *roomsensor.Assignment) AssignmentPlan {
	edit := &roomsensor.AssignmentEdit{ID: stored.ID, Seen: stored.Version(), Next: next}
	return AssignmentPlan{team, roomsensor.AssignmentChange{Edit: edit}}
}

// DeleteAssignment plans to delete an assignment. The readings of its device stay.
func (o *Operator) DeleteAssignment(ctx context.Context, id uuid.UUID) (AssignmentPlan, error) {
	team, stored, err := o.assignment(ctx, id)
	return planEdit(team, &stored, nil), err
}

// MoveOptions describe how a person moves to another device.
type MoveOptions struct {
	To         uuid.UUID
	At         *time.Time // nil is now
	IfOccupied string     // what happens to the open assignment of the device: swap or end; empty refuses the move
	OldRoom    *string    // label with which the old device starts as a place; nil for none
}

// MoveAssignment plans to move a person, whose open assignment has an id, to another device.
func (o *Operator) MoveAssignment(ctx context.Context, id uuid.UUID, options MoveOptions) (AssignmentPlan, error) {
	at, err := o.effectiveTime("at", options.At)
	if err != nil {
		return AssignmentPlan{}, err
	}
	team, stored, err := o.assignment(ctx, id)
	if err != nil {
		return AssignmentPlan{}, err
	}
	device, err := o.store.Device(ctx, team, options.To)
	switch {
	case errors.Is(err, roomsensor.ErrNotFound):
		return AssignmentPlan{}, process.Refusef("The team of assignment %s has no device %s.", id, options.To)
	case err != nil:
		return AssignmentPlan{}, o.explain(ctx, err)
	case stored.Type != roomsensor.Athlete:
		return AssignmentPlan{}, process.Refusef("Assignment %s is that of a place. Only athletes move.", id)
	case stored.DeviceID == options.To:
		return AssignmentPlan{}, process.Refusef("Assignment %s is one of that device already.", id)
	}
	move := roomsensor.Move{From: stored, To: options.To, At: at, Swap: options.IfOccupied == "swap"}
	if options.IfOccupied != "" && device.ActiveAssignment != nil {
		occupant, err := o.store.Assignment(ctx, team, device.ActiveAssignment.ID)
		if err != nil {
			return AssignmentPlan{}, o.explain(ctx, err)
		}
		move.Occupant = &occupant
	}
	set(&move.OldRoom, options.OldRoom)
	return AssignmentPlan{team, move.Change()}, nil
}

// assignment returns an assignment with its team.
func (o *Operator) assignment(ctx context.Context, id uuid.UUID) (uuid.UUID, roomsensor.Assignment, error) {
	team, err := o.store.AssignmentTeam(ctx, id)
	if err != nil {
		return uuid.Nil, roomsensor.Assignment{}, o.explain(ctx, err)
	}
	stored, err := o.store.Assignment(ctx, team, id)
	return team, stored, o.explain(ctx, err)
}

// maxOpenAthletes bounds the open assignments that are compared with a change.
const maxOpenAthletes = 100_000

// errPreview rolls back a preview.
var errPreview = errors.New("preview")

// PreviewAssignments returns what a plan would change, and changes nothing.
func (o *Operator) PreviewAssignments(ctx context.Context, p AssignmentPlan) (AssignmentPreview, error) {
	team, err := o.store.TeamSettings(ctx, p.team)
	if err != nil {
		return AssignmentPreview{}, o.explain(ctx, err)
	}
	open, err := o.store.OpenAthletes(ctx, p.team, maxOpenAthletes)
	if err != nil {
		return AssignmentPreview{}, o.explain(ctx, err)
	}
	var preview *airquality.AssignmentPreview
	_, err = o.store.ChangeAssignments(ctx, p.team, p.change, func(outcome roomsensor.AssignmentOutcome) error {
		preview = airquality.NewAssignmentPreview(outcome, p.change.Elsewhere(open), team.Night, team.TimeZone, o.now())
		return errPreview
	})
	if !errors.Is(err, errPreview) {
		return AssignmentPreview{}, o.explain(ctx, err)
	}
	return viewPreview(preview), nil
}

// ChangeAssignments carries out a plan.
func (o *Operator) ChangeAssignments(ctx context.Context, p AssignmentPlan) (ChangedAssignments, error) {
	outcome, err := o.store.ChangeAssignments(ctx, p.team, p.change, nil)
	if err != nil {
		return ChangedAssignments{}, o.explain(ctx, err)
	}
	return ChangedAssignments{viewAssignments(outcome.Before), viewAssignments(outcome.After)}, nil
}

// Assignments lists all assignments of a device, newest first.
func (o *Operator) Assignments(ctx context.Context, deviceID uuid.UUID) (List[Assignment], error) {
	assignments, err := o.store.DeviceAssignments(ctx, deviceID)
	return listOf(assignments, viewAssignment), o.explain(ctx, err)
}

// Assignment is an item of the assignment history, and its device.
type Assignment struct {
	AssignmentID string                    `json:"assignment_id"`
	DeviceID     string                    `json:"device_id"      table:"-"`
	Type         roomsensor.AssignmentType `json:"type"`
	Label        string                    `json:"label"`
	HomeOrTravel roomsensor.HomeOrTravel   `json:"home_or_travel"`
	StartedAt    string                    `json:"started_at"`
	EndedAt      *string                   `json:"ended_at"`
	ExternalRef  *string                   `json:"external_ref"`
}

// TransferredAssignment is a new assignment and the one that it replaces.
type TransferredAssignment struct {
	Assignment

	Replaces Assignment `json:"replaces"`
}

// ChangedAssignments are assignments before and after a change: those that ended, changed or were deleted, and those
// that ended, changed or started.
type ChangedAssignments struct {
	Before []Assignment `json:"before"`
	After  []Assignment `json:"after"`
}

// AssignmentPreview is what a plan would change.
type AssignmentPreview struct {
	ChangedAssignments

	Nights   []PreviewLine `json:"nights"`
	Warnings []PreviewLine `json:"warnings"`
}

// PreviewLine is a sentence.
type PreviewLine struct {
	Text string `json:"text"`
}

func viewPreview(p *airquality.AssignmentPreview) AssignmentPreview {
	view := AssignmentPreview{
		ChangedAssignments: ChangedAssignments{viewAssignments(p.Before), viewAssignments(p.After)},
		Nights:             []PreviewLine{}, Warnings: []PreviewLine{},
	}
	for i := range p.Nights {
		view.Nights = append(view.Nights, PreviewLine{p.Nights[i].String() + "."})
	}
	for i := range p.OldStarts {
		a := &p.OldStarts[i]
		view.Warnings = append(view.Warnings, PreviewLine{fmt.Sprintf(
			"%s starts at %s, more than 30 days ago. Check the date.", a.Label, roomsensor.FormatTime(a.StartedAt))})
	}
	for i := range p.Elsewhere {
		a := &p.Elsewhere[i]
		view.Warnings = append(view.Warnings, PreviewLine{fmt.Sprintf(
			"%s is open in %s since %s: assignment %s. End it with roomsensor assignment end, or use assignment move.",
			a.Label, wording.TextOr(a.DisplayName, a.HardwareID), roomsensor.FormatTime(a.StartedAt), a.ID)})
	}
	return view
}

func viewAssignments(all []roomsensor.Assignment) []Assignment {
	return listOf(all, viewAssignment).Data
}

func viewAssignment(a *roomsensor.Assignment) Assignment {
	return Assignment{
		AssignmentID: a.ID.String(), DeviceID: a.DeviceID.String(), Type: a.Type, Label: a.Label,
		HomeOrTravel: a.HomeOrTravel, StartedAt: roomsensor.FormatTime(a.StartedAt), EndedAt: formatTime(a.EndedAt),
		ExternalRef: a.ExternalRef,
	}
}
