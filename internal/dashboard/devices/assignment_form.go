package devices

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// assignmentForm is the data of web/pages/assignment.html: the form with which people start, transfer or end an
// assignment.
type assignmentForm struct {
	Action                              string // start, transfer or end; the last part of the path
	Title, Device                       string
	DeviceID                            uuid.UUID
	Current                             *roomsensor.Assignment // that is transferred or ended; nil for a start
	Type, Label, Where, ExternalRef, At string                 // as entered
	Zone                                string
	Conflict                            string // why the assignment as a whole cannot be changed
	Errors                              page.FormErrors
}

// New reports whether the form describes a new assignment.
func (f *assignmentForm) New() bool { return f.Action != "end" }

// ShowStart shows the form that starts an assignment.
func (p *Pages) ShowStart(ctx context.Context, v *page.Visit) error {
	return p.showForm(ctx, v, "start")
}

// ShowTransfer shows the form that transfers an assignment.
func (p *Pages) ShowTransfer(ctx context.Context, v *page.Visit) error {
	return p.showForm(ctx, v, "transfer")
}

// ShowEnd shows the form that ends an assignment.
func (p *Pages) ShowEnd(ctx context.Context, v *page.Visit) error { return p.showForm(ctx, v, "end") }

func (p *Pages) showForm(ctx context.Context, v *page.Visit, action string) error {
	form, err := p.newForm(ctx, v, action)
	if err != nil {
		return err
	}
	form.Type, form.Where = string(roomsensor.Place), string(roomsensor.Home)
	if form.Current != nil {
		form.Type, form.Where = string(form.Current.Type), string(form.Current.HomeOrTravel)
	}
	return v.Render("assignment", form)
}

// newForm returns the form for the device, or for the assignment, in the path.
func (p *Pages) newForm(ctx context.Context, v *page.Visit, action string) (*assignmentForm, error) {
	form := &assignmentForm{Action: action, Zone: v.Zone().String(), Errors: page.FormErrors{}}
	var err error
	if action == "start" {
		form.DeviceID, err = v.ID("device_id")
	} else {
		var id uuid.UUID
		if id, err = v.ID("assignment_id"); err != nil {
			return nil, err
		}
		var current roomsensor.Assignment
		current, err = p.backend.Assignment(ctx, v.Team.ID, id)
		form.Current, form.DeviceID = &current, current.DeviceID
	}
	if err != nil {
		return nil, err
	}
	device, err := p.backend.Device(ctx, v.Team.ID, form.DeviceID)
	if err != nil {
		return nil, err
	}
	form.Device = wording.NameOf(device.DisplayName, device.HardwareID)
	form.Title = map[string]string{
		"start": "Start an assignment", "transfer": "Transfer an assignment", "end": "End an assignment",
	}[action]
	return form, nil
}

// StartAssignment starts an assignment of a device.
func (p *Pages) StartAssignment(ctx context.Context, v *page.Visit) error {
	return p.change(ctx, v, "start", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		started, err := p.backend.StartAssignment(ctx, v.Team.ID, next)
		return "Started " + started.Label + " on " + f.Device + ".", err
	})
}

// TransferAssignment ends an assignment and starts the next one of its device.
func (p *Pages) TransferAssignment(ctx context.Context, v *page.Visit) error {
	return p.change(ctx, v, "transfer", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		ended, started, err := p.backend.TransferAssignment(ctx, v.Team.ID, f.Current.ID, next)
		return "Transferred " + f.Device + " from " + ended.Label + " to " + started.Label + ".", err
	})
}

// EndAssignment ends an assignment.
func (p *Pages) EndAssignment(ctx context.Context, v *page.Visit) error {
	return p.change(ctx, v, "end", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		ended, err := p.backend.EndAssignment(ctx, v.Team.ID, f.Current.ID, next.StartedAt)
		return "Ended " + ended.Label + " on " + f.Device + ".", err
	})
}

// change reads a form and calls do with it, which returns the message of success. A refusal is shown in the form.
func (p *Pages) change(
	ctx context.Context, v *page.Visit, action string,
	do func(f *assignmentForm, next roomsensor.Assignment) (message string, err error),
) error {
	form, err := p.newForm(ctx, v, action)
	if err != nil {
		return err
	}
	if err := v.CheckForm(); err != nil {
		return err
	}
	next := form.read(v)
	if len(form.Errors) > 0 {
		return v.Invalid("assignment", form)
	}
	message, err := do(form, next)
	if conflict, ok := errors.AsType[*roomsensor.AssignmentConflictError](err); ok {
		form.explain(v, conflict)
		return v.Invalid("assignment", form)
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("assignments"), message)
}

// read parses the fields, and adds their errors. The time of an end is the StartedAt of the result.
func (f *assignmentForm) read(v *page.Visit) (next roomsensor.Assignment) {
	f.Type, f.Label, f.Where = v.Form("type"), v.Form("label"), v.Form("home_or_travel")
	f.ExternalRef, f.At = v.Form("external_ref"), v.Form("at")
	next.DeviceID, next.StartedAt = f.DeviceID, v.EffectiveTime(f.At, f.Errors)
	if !f.New() {
		return next
	}
	next.Type, next.Label = roomsensor.AssignmentType(f.Type), f.Label
	next.HomeOrTravel = roomsensor.HomeOrTravel(f.Where)
	if next.Type != roomsensor.Place && next.Type != roomsensor.Athlete {
		f.Errors.Add("type", "Choose place or athlete.")
	}
	if next.HomeOrTravel != roomsensor.Home && next.HomeOrTravel != roomsensor.Travel {
		f.Errors.Add("home_or_travel", "Choose home or travel.")
	}
	f.Errors.AddCheck("label", "The label", roomsensor.CheckName(f.Label))
	if f.ExternalRef != "" {
		f.Errors.AddCheck("external_ref", "The reference", roomsensor.CheckName(f.ExternalRef))
		next.ExternalRef = &f.ExternalRef
	}
	return next
}

// explain adds the sentence about a conflict, which names the other assignment and its times.
func (f *assignmentForm) explain(v *page.Visit, c *roomsensor.AssignmentConflictError) {
	a := &c.Assignment
	switch c.Conflict {
	case roomsensor.AssignmentOverlaps:
		if a.EndedAt == nil {
			f.Conflict = f.Device + " has the open assignment “" + a.Label + "” since " + clock(v, a.StartedAt) +
				". End or transfer that one."
			return
		}
		f.Errors.Add("at", f.Device+" had the assignment “"+a.Label+"” from "+period(v, a)+
			". Enter its end or a later time.")
	case roomsensor.AssignmentStartedLater:
		f.Errors.Add("at", "“"+a.Label+"” started on "+clock(v, a.StartedAt)+". Enter a later time.")
	case roomsensor.AssignmentEnded:
		f.Conflict = "“" + a.Label + "” ended already, on " + clock(v, *a.EndedAt) + ". Nothing was changed."
	}
}
