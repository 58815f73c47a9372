package assignments

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// Action is what the form does. It is the last part of its path.
type Action string

// The actions.
const (
	Start    Action = "start"
	Transfer Action = "transfer"
	Move     Action = "move"
	Edit     Action = "edit"
	End      Action = "end"
	Delete   Action = "delete"
)

// actions are the texts and fields of the actions.
var actions = map[Action]struct {
	title, button string
	fields        []string
}{
	Start:    {"Start an assignment", "Start", []string{"label", "type", "home_or_travel", "external_ref", "at"}},
	Transfer: {"Transfer an assignment", "Transfer", []string{"label", "type", "home_or_travel", "external_ref", "at"}},
	Move:     {"Move a person", "Move", []string{"who", "to", "at", "if_occupied", "old_room"}},
	Edit: {"Edit an assignment", "Save", []string{
		"label", "type", "home_or_travel", "external_ref", "started_at", "ended_at", "reason", "version",
	}},
	End:    {"End an assignment", "End", []string{"at"}},
	Delete: {"Delete an assignment", "Delete", []string{"reason", "version"}},
}

// form is the data of web/pages/assignment.html: the form for all actions, and the preview of what it will change.
type form struct {
	Action        Action
	Title, Button string
	Device        string // name; empty for a move
	DeviceID      uuid.UUID
	Current       *roomsensor.Assignment // that the form changes; nil for a start, and for a move before it is sent
	Values        map[string]string      // of the fields, as entered
	Zone          string
	Known         []string // labels of athletes, to choose from
	Choices       []choice // of a move: who, and the new room
	Preview       *preview // nil while the form is filled in
	Conflict      string   // why the assignment as a whole cannot be changed
	Errors        page.FormErrors
}

// New reports whether the form describes an assignment.
func (f *form) New() bool { return f.Action == Start || f.Action == Transfer || f.Action == Edit }

// Show shows the form of an action.
func (p *Pages) Show(action Action) func(context.Context, *page.Visit) error {
	return func(ctx context.Context, v *page.Visit) error {
		f, err := p.newForm(ctx, v, action)
		if err != nil {
			return err
		}
		f.fill(v)
		return p.render(ctx, v, f)
	}
}

// render shows the form with what people can choose from, or the preview if there is one. A deletion has nothing else.
func (p *Pages) render(ctx context.Context, v *page.Visit, f *form) (err error) {
	switch {
	case f.Preview != nil:
	case f.Action == Delete:
		f.Preview = newPreview(v, f, f.readCorrection(nil), roomsensor.AssignmentOutcome{
			Before: []roomsensor.Assignment{*f.Current},
		})
	case f.Action == Move:
		err = p.addChoices(ctx, v, f)
	case f.New():
		f.Known, err = p.knownLabels(ctx, v)
	}
	switch {
	case err != nil:
		return err
	case len(f.Errors) > 0 || f.Conflict != "":
		return v.Invalid("assignment", f)
	}
	return v.Render("assignment", f)
}

// newForm returns the form for the device, or for the assignment, in the path.
func (p *Pages) newForm(ctx context.Context, v *page.Visit, action Action) (*form, error) {
	f := &form{
		Action: action, Title: actions[action].title, Button: actions[action].button, Zone: v.Zone().String(),
		Values: map[string]string{}, Errors: page.FormErrors{},
	}
	var err error
	switch action {
	case Move:
		return f, nil
	case Start:
		f.DeviceID, err = v.ID("device_id")
	default:
		f.Current, err = p.current(ctx, v)
		if f.Current != nil {
			f.DeviceID = f.Current.DeviceID
		}
	}
	if err != nil {
		return nil, err
	}
	f.Device, err = p.deviceName(ctx, v, f.DeviceID)
	return f, err
}

// current returns the assignment in the path. If somebody deleted it, the error says who.
func (p *Pages) current(ctx context.Context, v *page.Visit) (*roomsensor.Assignment, error) {
	id, err := v.ID("assignment_id")
	if err != nil {
		return nil, err
	}
	current, err := p.backend.Assignment(ctx, v.Team.ID, id)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return nil, p.explainDeletion(ctx, v, id, err)
	}
	return &current, err
}

func (p *Pages) deviceName(ctx context.Context, v *page.Visit, id uuid.UUID) (string, error) {
	device, err := p.backend.Device(ctx, v.Team.ID, id)
	return wording.TextOr(device.DisplayName, device.HardwareID), err
}

// fill sets the fields before anything is entered.
func (f *form) fill(v *page.Visit) {
	query := v.Echo.QueryParams()
	all := map[string]string{
		"who": query.Get("who"), "to": query.Get("to"), "if_occupied": "swap",
		"type": string(roomsensor.Place), "home_or_travel": string(roomsensor.Home),
	}
	if a := f.Current; a != nil {
		all = map[string]string{
			"label": a.Label, "type": string(a.Type), "home_or_travel": string(a.HomeOrTravel),
			"external_ref": wording.TextOr(a.ExternalRef, ""), "started_at": local(v, &a.StartedAt),
			"ended_at": local(v, a.EndedAt),
			"version":  versionOf(v, a),
		}
		if f.Action == Transfer { // To somebody else.
			all["label"], all["external_ref"] = "", ""
		}
	}
	for _, field := range actions[f.Action].fields {
		f.Values[field] = all[field]
	}
}

// local returns a time as a field has it; no time is empty.
func local(v *page.Visit, at *time.Time) string {
	if at == nil {
		return ""
	}
	return roomsensor.FormatLocal(*at, v.Zone())
}

// versionOf returns the hidden field with which an edit finds out that somebody else changed the assignment: when it
// was shown, and what it was then.
func versionOf(v *page.Visit, a *roomsensor.Assignment) string {
	return roomsensor.FormatTime(v.Now.UTC()) + "," + a.Version()
}

// Save carries out an action. It shows a preview first if that must be confirmed, and refusals in the form.
func (p *Pages) Save(action Action) func(context.Context, *page.Visit) error {
	return func(ctx context.Context, v *page.Visit) error {
		f, err := p.newForm(ctx, v, action)
		if err != nil {
			return err
		}
		for _, field := range actions[action].fields {
			f.Values[field] = v.Form(field)
		}
		if v.Form("back") != "" {
			return p.render(ctx, v, f)
		}
		plan, err := p.read(ctx, v, f)
		if err != nil {
			return err
		}
		if len(f.Errors) > 0 {
			return p.render(ctx, v, f)
		}
		return p.carryOut(ctx, v, f, plan)
	}
}

// plan is a change that a form asks for.
type plan struct {
	change    roomsensor.AssignmentChange
	elsewhere []roomsensor.DeviceAssignment // see AssignmentChange.Elsewhere
	canEnd    bool                          // some of these can end when the new assignment starts
	lines     []string                      // sentences of the preview about the change
	named     []string                      // of the assignments that the person must have seen before it is saved
	message   string                        // of success
}

// read returns what the fields ask for, and adds their errors.
func (p *Pages) read(ctx context.Context, v *page.Visit, f *form) (made *plan, err error) {
	switch f.Action {
	case Move:
		return p.readMove(ctx, v, f)
	case End:
		made = &plan{change: roomsensor.EndAssignment(f.Current.ID, v.EffectiveTime(f.Values["at"], f.Errors))}
		made.message = "Ended " + f.Current.Label + " on " + f.Device + since(v, f) + "."
	case Delete:
		made = f.readCorrection(nil)
		made.message = "Deleted " + f.Current.Label + " on " + f.Device + "."
	case Edit:
		made = f.readCorrection(f.readEdit(v))
		made.message = "Changed " + f.Current.Label + " on " + f.Device + "."
	case Start, Transfer:
		if made, err = p.readStart(ctx, v, f); err != nil {
			return nil, err
		}
	}
	return made, p.addElsewhere(ctx, v, f, made)
}

// readStart reads the fields of a start or a transfer.
func (p *Pages) readStart(ctx context.Context, v *page.Visit, f *form) (*plan, error) {
	next := f.readNew()
	next.DeviceID, next.StartedAt = f.DeviceID, v.EffectiveTime(f.Values["at"], f.Errors)
	note, err := p.carryReference(ctx, v, &next)
	made := &plan{change: roomsensor.StartAssignment(next)}
	made.message = "Started " + next.Label + " on " + f.Device + since(v, f) + "." + note
	if f.Action == Transfer {
		made.change = roomsensor.TransferAssignment(f.Current.ID, next)
		made.message = "Transferred " + f.Device + " from " + f.Current.Label + " to " + next.Label + since(v, f) + "." + note
	}
	return made, err
}

// since returns the time of a change, as entered, for its message; empty for now.
func since(v *page.Visit, f *form) string {
	at := v.PastTime("at", f.Values["at"], f.Errors)
	if at == nil {
		return ""
	}
	return " at " + clock(v, *at)
}

// readNew reads the fields that describe an assignment.
func (f *form) readNew() (next roomsensor.Assignment) {
	next.Type, next.Label = roomsensor.AssignmentType(f.Values["type"]), f.Values["label"]
	next.HomeOrTravel = roomsensor.HomeOrTravel(f.Values["home_or_travel"])
	if next.Type != roomsensor.Place && next.Type != roomsensor.Athlete {
		f.Errors.Add("type", "Choose place or athlete.")
	}
	if next.HomeOrTravel != roomsensor.Home && next.HomeOrTravel != roomsensor.Travel {
		f.Errors.Add("home_or_travel", "Choose home or travel.")
	}
	f.Errors.AddCheck("label", "The label", roomsensor.CheckName(next.Label))
	if ref := f.Values["external_ref"]; ref != "" {
		f.Errors.AddCheck("external_ref", "The reference", roomsensor.CheckName(ref))
		next.ExternalRef = &ref
	}
	return next
}

// readEdit reads the fields of an edit. A time that was not touched keeps its seconds, and its hour if the clocks were
// set back to it.
func (f *form) readEdit(v *page.Visit) *roomsensor.Assignment {
	next := f.readNew()
	next.StartedAt, next.EndedAt = f.Current.StartedAt, f.Current.EndedAt
	if entered := f.Values["started_at"]; entered != local(v, &next.StartedAt) {
		if started := v.PastTime("started_at", entered, f.Errors); started != nil {
			next.StartedAt = *started
		} else {
			f.Errors.Add("started_at", "Enter when the assignment started.")
		}
	}
	if entered := f.Values["ended_at"]; entered != local(v, next.EndedAt) {
		next.EndedAt = v.PastTime("ended_at", entered, f.Errors)
	}
	return &next
}

// readCorrection reads the fields of an edit or a deletion. The person must have seen the preview.
func (f *form) readCorrection(next *roomsensor.Assignment) *plan {
	_, seen, ok := strings.Cut(f.Values["version"], ",")
	if !ok {
		seen = "nothing"
	}
	made := &plan{named: []string{seen}}
	if made.change.Reason = f.Values["reason"]; made.change.Reason != "" {
		f.Errors.AddCheck("reason", "The reason", roomsensor.CheckName(made.change.Reason))
	}
	made.change.Edit = &roomsensor.AssignmentEdit{ID: f.Current.ID, Seen: seen, Next: next}
	return made
}

// The assignments of which people can choose, and those with which a change is compared.
const (
	maxChoices      = 1000
	maxKnown        = 200
	maxOpenAthletes = 10_000
)

// knownLabels lists the labels of the athletes of the team, those that started last first.
func (p *Pages) knownLabels(ctx context.Context, v *page.Visit) (labels []string, err error) {
	known, err := p.backend.KnownAthletes(ctx, v.Team.ID, maxKnown)
	seen := map[string]bool{}
	for _, athlete := range known {
		if !seen[athlete.Label] {
			seen[athlete.Label] = true
			labels = append(labels, athlete.Label)
		}
	}
	return labels, err
}

// carryReference gives an athlete without a reference the one that the team has for the label, if there is only one. It
// returns a sentence that says so.
func (p *Pages) carryReference(ctx context.Context, v *page.Visit, next *roomsensor.Assignment) (string, error) {
	if next.Type != roomsensor.Athlete || next.ExternalRef != nil {
		return "", nil
	}
	known, err := p.backend.KnownAthletes(ctx, v.Team.ID, maxOpenAthletes)
	ref, ok := roomsensor.KnownRef(known, next.Label)
	if err != nil || !ok {
		return "", err
	}
	next.ExternalRef = &ref
	return " The reference " + ref + " of " + next.Label + " was carried over.", nil
}
