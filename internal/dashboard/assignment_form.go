package dashboard

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
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
	Errors                              formErrors
}

// New reports whether the form describes a new assignment.
func (f *assignmentForm) New() bool { return f.Action != "end" }

func (s *server) showStart(ctx context.Context, v *visit) error { return s.showForm(ctx, v, "start") }

func (s *server) showTransfer(ctx context.Context, v *visit) error {
	return s.showForm(ctx, v, "transfer")
}
func (s *server) showEnd(ctx context.Context, v *visit) error { return s.showForm(ctx, v, "end") }

func (s *server) showForm(ctx context.Context, v *visit, action string) error {
	form, err := s.newForm(ctx, v, action)
	if err != nil {
		return err
	}
	form.Type, form.Where = string(roomsensor.Place), string(roomsensor.Home)
	if form.Current != nil {
		form.Type, form.Where = string(form.Current.Type), string(form.Current.HomeOrTravel)
	}
	return v.render("assignment", form)
}

// newForm returns the form for the device, or for the assignment, in the path.
func (s *server) newForm(ctx context.Context, v *visit, action string) (*assignmentForm, error) {
	form := &assignmentForm{Action: action, Zone: v.zone().String(), Errors: formErrors{}}
	var err error
	if action == "start" {
		form.DeviceID, err = v.id("device_id")
	} else {
		var id uuid.UUID
		if id, err = v.id("assignment_id"); err != nil {
			return nil, err
		}
		var current roomsensor.Assignment
		current, err = s.backend.Assignment(ctx, v.team.ID, id)
		form.Current, form.DeviceID = &current, current.DeviceID
	}
	if err != nil {
		return nil, err
	}
	device, err := s.backend.Device(ctx, v.team.ID, form.DeviceID)
	if err != nil {
		return nil, err
	}
	form.Device = nameOf(device.DisplayName, device.HardwareID)
	form.Title = map[string]string{
		"start": "Start an assignment", "transfer": "Transfer an assignment", "end": "End an assignment",
	}[action]
	return form, nil
}

func (s *server) startAssignment(ctx context.Context, v *visit) error {
	return s.change(ctx, v, "start", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		started, err := s.backend.StartAssignment(ctx, v.team.ID, next)
		return "Started " + started.Label + " on " + f.Device + ".", err
	})
}

func (s *server) transferAssignment(ctx context.Context, v *visit) error {
	return s.change(ctx, v, "transfer", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		ended, started, err := s.backend.TransferAssignment(ctx, v.team.ID, f.Current.ID, next)
		return "Transferred " + f.Device + " from " + ended.Label + " to " + started.Label + ".", err
	})
}

func (s *server) endAssignment(ctx context.Context, v *visit) error {
	return s.change(ctx, v, "end", func(f *assignmentForm, next roomsensor.Assignment) (string, error) {
		ended, err := s.backend.EndAssignment(ctx, v.team.ID, f.Current.ID, next.StartedAt)
		return "Ended " + ended.Label + " on " + f.Device + ".", err
	})
}

// change reads a form and calls do with it, which returns the message of success. A refusal is shown in the form.
func (s *server) change(
	ctx context.Context, v *visit, action string,
	do func(f *assignmentForm, next roomsensor.Assignment) (message string, err error),
) error {
	form, err := s.newForm(ctx, v, action)
	if err != nil {
		return err
	}
	if err := v.checkForm(); err != nil {
		return err
	}
	next := form.read(v)
	if len(form.Errors) > 0 {
		return v.invalid("assignment", form)
	}
	message, err := do(form, next)
	if conflict, ok := errors.AsType[*roomsensor.AssignmentConflictError](err); ok {
		form.explain(v, conflict)
		return v.invalid("assignment", form)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("assignments"), message)
}

// read parses the fields, and adds their errors. The time of an end is the StartedAt of the result.
func (f *assignmentForm) read(v *visit) (next roomsensor.Assignment) {
	f.Type, f.Label, f.Where = v.form("type"), v.form("label"), v.form("home_or_travel")
	f.ExternalRef, f.At = v.form("external_ref"), v.form("at")
	next.DeviceID, next.StartedAt = f.DeviceID, v.effectiveTime(f.At, f.Errors)
	if !f.New() {
		return next
	}
	next.Type, next.Label = roomsensor.AssignmentType(f.Type), f.Label
	next.HomeOrTravel = roomsensor.HomeOrTravel(f.Where)
	if next.Type != roomsensor.Place && next.Type != roomsensor.Athlete {
		f.Errors.add("type", "Choose place or athlete.")
	}
	if next.HomeOrTravel != roomsensor.Home && next.HomeOrTravel != roomsensor.Travel {
		f.Errors.add("home_or_travel", "Choose home or travel.")
	}
	f.Errors.addCheck("label", "The label", roomsensor.CheckName(f.Label))
	if f.ExternalRef != "" {
		f.Errors.addCheck("external_ref", "The reference", roomsensor.CheckName(f.ExternalRef))
		next.ExternalRef = &f.ExternalRef
	}
	return next
}

// explain adds the sentence about a conflict, which names the other assignment and its times.
func (f *assignmentForm) explain(v *visit, c *roomsensor.AssignmentConflictError) {
	a := &c.Assignment
	switch c.Conflict {
	case roomsensor.AssignmentOverlaps:
		if a.EndedAt == nil {
			f.Conflict = f.Device + " has the open assignment “" + a.Label + "” since " + v.clock(a.StartedAt) +
				". End or transfer that one."
			return
		}
		f.Errors.add("at", f.Device+" had the assignment “"+a.Label+"” from "+v.period(a)+
			". Enter its end or a later time.")
	case roomsensor.AssignmentStartedLater:
		f.Errors.add("at", "“"+a.Label+"” started on "+v.clock(a.StartedAt)+". Enter a later time.")
	case roomsensor.AssignmentEnded:
		f.Conflict = "“" + a.Label + "” ended already, on " + v.clock(*a.EndedAt) + ". Nothing was changed."
	}
}
