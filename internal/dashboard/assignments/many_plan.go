package assignments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// manyPlan is what a table asks for.
type manyPlan struct {
	change   roomsensor.AssignmentChange
	changes  []manyChange
	devices  int // that change
	problems []manyProblem
	lines    map[uuid.UUID]int // by device

	pages    *Pages
	v        *page.Visit
	all      []roomsensor.Device           // of the team
	athletes []roomsensor.DeviceAssignment // open ones
	known    []roomsensor.AthleteName
	ends     map[uuid.UUID]int // index in change.End by assignment
	people   map[roomsensor.PersonKey]personLine
}

// personLine is the line that names a person.
type personLine struct {
	number int
	starts bool // the person is not in that room yet
}

// planMany reads a table and compares it with what is stored.
func (p *Pages) planMany(ctx context.Context, v *page.Visit, table string) (m *manyPlan, err error) {
	m = &manyPlan{
		pages: p, v: v, lines: map[uuid.UUID]int{}, ends: map[uuid.UUID]int{},
		people: map[roomsensor.PersonKey]personLine{},
	}
	lines, problems := readMany(table)
	if m.problems = problems; len(problems) > 0 {
		return m, nil
	}
	if m.all, err = p.devices(ctx, v); err != nil {
		return nil, err
	}
	if m.athletes, err = p.backend.OpenAthletes(ctx, v.Team.ID, maxOpenAthletes); err != nil {
		return nil, err
	}
	if m.known, err = p.backend.KnownAthletes(ctx, v.Team.ID, maxOpenAthletes); err != nil {
		return nil, err
	}
	for i := range lines {
		m.read(ctx, &lines[i])
	}
	slices.SortStableFunc(m.problems, func(a, b manyProblem) int { return a.Line - b.Line })
	return m, nil
}

func (m *manyPlan) refuse(line int, text string) {
	m.problems = append(m.problems, manyProblem{line, text})
}

// read reads a line.
func (m *manyPlan) read(ctx context.Context, l *manyLine) {
	d, problem := m.find(l)
	if problem != "" {
		m.refuse(l.Number, problem)
		return
	}
	if other, ok := m.lines[d.ID]; ok {
		m.refuse(l.Number, fmt.Sprintf("Line %d is about the same device. Put both into one.", other))
		return
	}
	m.lines[d.ID] = l.Number
	before := len(m.changes)
	m.readDescription(l, d)
	m.readAssignment(ctx, l, d)
	if len(m.changes) > before {
		m.devices++
	}
}

// find returns the device of a line. problem is a sentence, or empty.
func (m *manyPlan) find(l *manyLine) (found *roomsensor.Device, problem string) {
	id, unit, name := l.cells["device id"], l.cells["hardware id"], l.cells["name"]
	if id+unit+name == "" {
		return nil, "The line names no device."
	}
	byName := id+unit == ""
	for i := range m.all {
		d := &m.all[i]
		switch {
		case byName && cellOf(nameOf(d)) != name:
		case id != "" && !strings.EqualFold(id, d.ID.String()):
		case unit != "" && wording.WithUnitPrefix(unit) != d.HardwareID:
		case found != nil:
			return nil, "Several devices of this team are called “" + id + unit + name + "”. Use a column device_id."
		default:
			found = d
		}
	}
	switch {
	case found == nil:
		return nil, "This team has no device “" + strings.TrimSpace(id+" "+unit+" "+name) + "”."
	case name != "" && cellOf(nameOf(found)) != name:
		return nil, "The name of this device is “" + nameOf(found) + "”. To change it, call the column new name."
	}
	return found, ""
}

// readDescription reads the name and the tags of a device.
func (m *manyPlan) readDescription(l *manyLine, d *roomsensor.Device) {
	edit := roomsensor.DeviceEdit{Seen: *d, Patch: roomsensor.DevicePatch{
		Metadata: roomsensor.MetadataPatch{Values: map[string]*string{}},
	}}
	before := len(m.changes)
	if name, changes := edited(l.cells["new name"], d.DisplayName); changes {
		if name != nil {
			m.check(l, "The name", roomsensor.CheckName(*name))
		}
		edit.Patch.SetDisplayName, edit.Patch.DisplayName = true, name
		m.show(l, d, "Name", wording.TextOr(d.DisplayName, ""), wording.TextOr(name, ""))
	}
	tags := m.tags(l)
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		var present *string
		if value, ok := d.Metadata[key]; ok {
			present = &value
		}
		if value, changes := edited(tags[key], present); changes {
			edit.Patch.Metadata.Values[key] = value
			m.show(l, d, "Tag "+key, wording.TextOr(present, ""), wording.TextOr(value, ""))
		}
	}
	if len(m.changes) > before {
		m.check(l, "A tag is not valid:", roomsensor.CheckMetadata(edit.Patch.Metadata.Apply(d.Metadata)))
		m.change.Devices = append(m.change.Devices, edit)
	}
}

// tags returns the tags of a line by key.
func (m *manyPlan) tags(l *manyLine) map[string]string {
	tags := map[string]string{}
	for column, cell := range l.cells {
		if key, ok := strings.CutPrefix(column, tagColumn); ok {
			tags[key] = cell
		}
	}
	for tag := range strings.SplitSeq(l.cells["tags"], ",") {
		key, value, ok := wording.ParseTag(tag)
		if _, twice := tags[key]; key == "" && !ok {
			continue
		} else if !ok || twice || roomsensor.CheckMetadataKey(key) != nil {
			m.refuse(l.Number, "Enter tags as key=value, each key once, separated by commas, such as building=gym, floor=2.")
		}
		tags[key] = value
	}
	return tags
}

// check adds the problem of a check, such as roomsensor.CheckName, which continues a sentence.
func (m *manyPlan) check(l *manyLine, subject string, err error) {
	if err != nil {
		m.refuse(l.Number, subject+" "+err.Error()+".")
	}
}

func (m *manyPlan) show(l *manyLine, d *roomsensor.Device, field, before, after string) {
	m.changes = append(m.changes, manyChange{difference{field, before, after}, l.Number, nameOf(d)})
}

// readAssignment reads the person or the place of a device, and since when.
func (m *manyPlan) readAssignment(ctx context.Context, l *manyLine, d *roomsensor.Device) {
	open := d.ActiveAssignment
	person, place := assigned(d)
	next := roomsensor.Assignment{DeviceID: d.ID, HomeOrTravel: roomsensor.Home}
	ends := false
	for kind, present := range map[roomsensor.AssignmentType]*string{roomsensor.Athlete: person, roomsensor.Place: place} {
		cell := l.cells[columnsOfTypes[kind]]
		label, changes := edited(cell, present)
		changes = changes && (label == nil || present == nil || !strings.EqualFold(*label, *present))
		switch {
		case changes && label != nil:
			next.Type, next.Label = kind, *label
		case changes:
			ends = true
		}
	}
	isLabel := func(column string) bool { return l.cells[column] != "" && l.cells[column] != noValue }
	if next.Label != "" && isLabel("person") && isLabel("place") {
		m.refuse(l.Number, "Enter a person or a place, and not both.")
		return
	}
	errs := page.FormErrors{}
	at := m.v.EffectiveTime(localOf(l.cells["since"]), errs)
	switch {
	case len(errs) > 0:
		m.refuse(l.Number, errs["at"])
	case next.Label != "":
		m.start(ctx, l, d, next, at)
	case ends:
		m.end(ctx, l, open, at)
		m.show(l, d, "Assignment", m.describe(open), "")
	case open != nil:
		if key, ok := open.Person(); ok && l.cells["person"] != "" {
			m.claim(l, key, open.Label, false)
		}
		named := l.cells["person"] != "" || l.cells["place"] != ""
		if since := l.cells["since"]; named && since != "" && local(m.v, &open.StartedAt) != local(m.v, &at) {
			m.refuse(l.Number, m.describe(open)+" is there already. To correct the start, edit the assignment.")
		}
	}
}

// columnsOfTypes are the columns of the types of assignments.
var columnsOfTypes = map[roomsensor.AssignmentType]string{roomsensor.Athlete: "person", roomsensor.Place: "place"}

// localOf returns a time as a field has it: "2026-01-31 08:00" and "2026-01-31" are times, too.
func localOf(cell string) string {
	if _, err := time.Parse(time.DateOnly, cell); err == nil {
		return cell + "T00:00"
	}
	return strings.Replace(cell, " ", "T", 1)
}

// describe returns an assignment for a sentence.
func (m *manyPlan) describe(a *roomsensor.Assignment) string { return a.Label + " " + period(m.v, a) }

// start starts an assignment of a device, and ends the one that the device has, and those of the person elsewhere.
func (m *manyPlan) start(
	ctx context.Context, l *manyLine, d *roomsensor.Device, next roomsensor.Assignment, at time.Time,
) {
	next.StartedAt = at
	m.check(l, "The label", roomsensor.CheckName(next.Label))
	before, after := "", next.Label+", from now"
	if l.cells["since"] != "" {
		after = m.describe(&next)
	}
	if open := d.ActiveAssignment; open != nil {
		before = m.describe(open)
		m.end(ctx, l, open, at)
	}
	if ref, ok := roomsensor.KnownRef(m.known, next.Label); ok && next.Type == roomsensor.Athlete {
		next.ExternalRef = &ref
	}
	if key, ok := next.Person(); ok {
		m.claim(l, key, next.Label, true)
		for i := range m.athletes {
			if other := &m.athletes[i]; other.IsPerson(key) && other.DeviceID != d.ID {
				after += "; leaves " + wording.TextOr(other.DisplayName, other.HardwareID)
				next.HomeOrTravel = other.HomeOrTravel
				m.end(ctx, l, &other.Assignment, at)
			}
		}
	}
	m.change.Start = append(m.change.Start, next)
	m.show(l, d, fieldOf(next.Type), before, after)
}

// fieldOf returns the name of the field of an assignment of a type.
func fieldOf(kind roomsensor.AssignmentType) string {
	if kind == roomsensor.Athlete {
		return "Person"
	}
	return "Place"
}

// end ends an assignment. Two lines may: the earlier time counts, because the person is elsewhere from then on.
func (m *manyPlan) end(ctx context.Context, l *manyLine, open *roomsensor.Assignment, at time.Time) {
	if !at.After(open.StartedAt) {
		f := &form{Action: Start, Errors: page.FormErrors{}}
		_ = m.pages.explain(ctx, m.v, f, &roomsensor.AssignmentConflictError{ // It reads nothing for this conflict.
			Conflict: roomsensor.AssignmentStartedLater, Assignment: *open,
		})
		m.refuse(l.Number, f.Errors["at"])
		return
	}
	if i, ok := m.ends[open.ID]; ok {
		if end := &m.change.End[i]; at.Before(end.At) {
			end.At = at
		}
		return
	}
	m.ends[open.ID] = len(m.change.End)
	m.change.End = append(m.change.End, roomsensor.AssignmentEnd{ID: open.ID, At: at})
}

// claim records that a line names a person, who can be on one line only. Two that are stored already stay.
func (m *manyPlan) claim(l *manyLine, key roomsensor.PersonKey, label string, starts bool) {
	if other, ok := m.people[key]; ok && (starts || other.starts) {
		m.refuse(l.Number, fmt.Sprintf("%s is on line %d, too. Empty that cell: a person who moves leaves the old room.",
			label, other.number))
	}
	m.people[key] = personLine{l.Number, starts}
}
