package devices

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// notes reads the notes of a window about a device, and about people while they have it.
func (p *Pages) notes(
	ctx context.Context, v *page.Visit, deviceID uuid.UUID, w roomsensor.Window, during []roomsensor.Assignment,
) (page.NotesView, error) {
	path := v.Path("devices", deviceID.String())
	return v.ReadNotes(ctx, p.backend, path, w, func(n *roomsensor.Note) (kept, elsewhere bool) {
		if _, elsewhere = n.Person(); !elsewhere {
			return n.DeviceID == deviceID, false
		}
		return slices.ContainsFunc(during, func(a roomsensor.Assignment) bool { return n.IsOf(&a) }), true
	})
}

// marksOf returns the marks of notes in a chart.
func marksOf(notes []page.NoteRow) (marks []chart.Mark) {
	for i := range notes {
		mark := chart.Mark{At: notes[i].At, Text: notes[i].Text}
		if notes[i].Elsewhere {
			mark.Text = notes[i].Assignment.Label + ": " + mark.Text
		}
		marks = append(marks, mark)
	}
	return marks
}

// AddNote adds a note about a device.
func (p *Pages) AddNote(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("device_id")
	if err != nil {
		return err
	}
	at, form, err := v.AddNote(ctx, p.backend, roomsensor.Note{DeviceID: id})
	if err != nil {
		return err
	}
	if len(form.Errors) == 0 {
		return v.Redirect(v.Path("devices", id.String())+queryOf(v, at), "The note is saved.")
	}
	view, err := p.deviceView(ctx, v)
	if err != nil {
		return err
	}
	view.Notes.Form = form
	return v.Invalid("device", view)
}

// queryOf returns the query of a page that shows a time: that of the request, or else a window around it. The window is
// from noon to noon, because no zone changes its clocks then.
func queryOf(v *page.Visit, at time.Time) string {
	if w := readWindow(v, page.FormErrors{}); w.Contains(at) || w.Range != "" && at.After(w.From) {
		return v.Query()
	}
	noon := func(days int) string { return at.In(v.Zone()).AddDate(0, 0, days).Format(time.DateOnly) + "T12:00" }
	return "?from=" + noon(-1) + "&to=" + noon(1)
}

// DeleteNote deletes a note about a device.
func (p *Pages) DeleteNote(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("device_id")
	if err != nil {
		return err
	}
	return v.DeleteNote(ctx, p.backend, v.Path("devices", id.String()))
}
