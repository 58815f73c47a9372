package nights

import (
	"context"
	"slices"
	"time"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// notesOf returns the notes of a room in a night and of who slept there, the oldest first. The notes are those of the
// night, the newest first.
func notesOf(a *roomsensor.Assignment, notes []roomsensor.Note) (found []roomsensor.Note) {
	for i := range slices.Backward(notes) {
		if notes[i].IsOf(a) {
			found = append(found, notes[i])
		}
	}
	return found
}

// AddNote adds a note about a person, who is named by one of the assignments.
func (p *Pages) AddNote(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("assignment_id")
	if err != nil {
		return err
	}
	at, form, err := v.AddNote(ctx, p.backend, roomsensor.Note{AssignmentID: &id})
	if err != nil {
		return err
	}
	if len(form.Errors) == 0 {
		query := v.Query()
		if w := shownNights(v).window; at.Before(w.From) || at.After(w.To) {
			query = "?until=" + at.In(v.Zone()).Format(time.DateOnly)
		}
		return v.Redirect(v.Path("people", id.String())+query, "The note is saved.")
	}
	view, err := p.personView(ctx, v, id)
	if err != nil {
		return err
	}
	view.Notes.Form = form
	return v.Invalid("person", view)
}

// DeleteNote deletes a note about a person.
func (p *Pages) DeleteNote(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("assignment_id")
	if err != nil {
		return err
	}
	return v.DeleteNote(ctx, p.backend, v.Path("people", id.String()))
}
