package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Notes reads and changes notes.
type Notes interface {
	// Notes lists the notes of a team in a window, the newest first.
	Notes(ctx context.Context, teamID uuid.UUID, w roomsensor.Window) ([]roomsensor.Note, error)
	// AddNote returns an error of the rule about the field text if the team has too many notes.
	AddNote(ctx context.Context, teamID uuid.UUID, n *roomsensor.Note) error
	DeleteNote(ctx context.Context, teamID, noteID uuid.UUID) error
	Audit
}

// maxShownNotes is how many notes a page shows at most, the newest ones.
const maxShownNotes = 100

// NotesView is the data of web/parts/notes.html: the notes of a page, and the form that adds one.
type NotesView struct {
	Notes []NoteRow // the oldest first
	More  bool      // whether there are older ones
	Path  string    // of the page
	Query string    // of the page, with the question mark
	Zone  string
	Form  NoteForm
}

// NoteRow is a note of a page.
type NoteRow struct {
	roomsensor.Note

	Elsewhere bool // the note is about the person of its assignment, who has another page
}

// NoteForm is a form that adds a note, as entered.
type NoteForm struct {
	At, Text string
	Errors   FormErrors
}

// TeamNotes lists the notes of the team in a window, the newest first. Those who have only a link see none.
func (v *Visit) TeamNotes(ctx context.Context, notes Notes, w roomsensor.Window) ([]roomsensor.Note, error) {
	if v.Role == roomsensor.NoRole {
		return nil, nil
	}
	return notes.Notes(ctx, v.Team.ID, w)
}

// ReadNotes returns the notes of a window that keep selects, for a page at a path. The minute of the end counts,
// because a note of now has it.
func (v *Visit) ReadNotes(
	ctx context.Context, notes Notes, path string, w roomsensor.Window,
	keep func(*roomsensor.Note) (kept, elsewhere bool),
) (view NotesView, err error) {
	w.To = w.To.Add(time.Minute)
	all, err := v.TeamNotes(ctx, notes, w)
	for i := range all {
		kept, elsewhere := keep(&all[i])
		if view.More = kept && len(view.Notes) == maxShownNotes; view.More {
			break
		}
		if kept {
			view.Notes = append(view.Notes, NoteRow{all[i], elsewhere})
		}
	}
	slices.Reverse(view.Notes)
	view.Path, view.Query, view.Zone = path, v.Query(), v.Zone().String()
	return view, err
}

// Query returns the query of the request with its question mark; empty without one.
func (v *Visit) Query() string {
	if query := v.Echo.Request().URL.RawQuery; query != "" {
		return "?" + query
	}
	return ""
}

// AddNote stores the note of a posted form about a device or a person. The result has the time of the note, and the
// form with its errors if it is refused.
func (v *Visit) AddNote(ctx context.Context, notes Notes, n roomsensor.Note) (at time.Time, form NoteForm, err error) {
	form = NoteForm{At: v.Form("note_at"), Text: strings.ReplaceAll(v.Form("text"), "\r\n", "\n"), Errors: FormErrors{}}
	form.Errors.AddCheck("text", "The note", roomsensor.CheckNote(form.Text))
	n.Text, n.At = form.Text, v.Now.UTC().Truncate(time.Minute)
	if entered := v.PastTime("note_at", form.At, form.Errors); entered != nil {
		n.At = *entered
	}
	if len(form.Errors) > 0 {
		return n.At, form, nil
	}
	err = notes.AddNote(ctx, v.Team.ID, &n)
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok && rule.Param == "text" {
		form.Errors.AddRule(err)
		err = nil
	}
	return n.At, form, err
}

// DeleteNote deletes the note in the path, and returns to a page.
func (v *Visit) DeleteNote(ctx context.Context, notes Notes, path string) error {
	id, err := v.ID("note_id")
	if err == nil {
		err = v.AcceptDeleted(ctx, notes, id, notes.DeleteNote(ctx, v.Team.ID, id))
	}
	if err != nil {
		return err
	}
	return v.Redirect(path+v.Query(), "The note is deleted.")
}
