package assignments

import (
	"context"
	"errors"
	"slices"
	"strings"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// preview is what a person sees before a change is saved.
type preview struct {
	Fields    []difference // of an edit
	Lines     []string     // sentences
	Warnings  []string
	Elsewhere bool   // the person chooses whether the assignments elsewhere end
	Token     string // that the form sends again if the person saw all of this
}

// difference is a field that changes. A side is empty if the field has no value.
type difference struct{ Name, Before, After string }

// addElsewhere finds the other open assignments of a person, and ends those that started before, unless the person who
// fills in the form wants to keep them.
func (p *Pages) addElsewhere(ctx context.Context, v *page.Visit, f *form, made *plan) error {
	if len(f.Errors) > 0 || len(made.change.Start) == 0 && (made.change.Edit == nil || made.change.Edit.Next == nil) {
		return nil
	}
	open, err := p.backend.OpenAthletes(ctx, v.Team.ID, maxOpenAthletes)
	if err != nil {
		return err
	}
	made.elsewhere = made.change.Elsewhere(open)
	for i := range made.elsewhere {
		other := &made.elsewhere[i]
		if f.Action == Edit || !other.StartedAt.Before(made.change.Start[0].StartedAt) {
			made.named = append(made.named, other.ID.String())
			continue
		}
		made.named = append(made.named, "end "+other.ID.String())
		made.canEnd = true
		if v.Form("elsewhere") != "keep" {
			end := roomsensor.AssignmentEnd{ID: other.ID, At: made.change.Start[0].StartedAt}
			made.change.End = append(made.change.End, end)
		}
	}
	return nil
}

// errUnconfirmed means that the person must see the preview first.
var errUnconfirmed = errors.New("unconfirmed")

// carryOut saves a change, or shows its preview if the person has not seen what is named there.
func (p *Pages) carryOut(ctx context.Context, v *page.Visit, f *form, made *plan) error {
	var shown *preview
	_, err := p.backend.ChangeAssignments(ctx, v.Team.ID, made.change, func(outcome roomsensor.AssignmentOutcome) error {
		shown = newPreview(v, f, made, outcome)
		if shown.Token != "" && v.Form("confirm") != shown.Token {
			return errUnconfirmed
		}
		return nil
	})
	if errors.Is(err, errUnconfirmed) {
		f.Preview = shown
		return p.render(ctx, v, f)
	}
	if conflict, ok := errors.AsType[*roomsensor.AssignmentConflictError](err); ok {
		if err := p.explain(ctx, v, f, conflict); err != nil {
			return err
		}
		return p.render(ctx, v, f)
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("assignments"), made.message)
}

func newPreview(v *page.Visit, f *form, made *plan, outcome roomsensor.AssignmentOutcome) *preview {
	found := airquality.NewAssignmentPreview(outcome, made.elsewhere, v.Team.Night, v.Team.TimeZone, v.Now)
	shown := &preview{Lines: slices.Clone(made.lines), Elsewhere: made.canEnd}
	named := slices.Clone(made.named)
	if f.Action == Edit {
		shown.Fields = differences(v, &outcome.Before[0], &outcome.After[0])
	}
	for i := range found.Nights {
		shown.Lines = append(shown.Lines, found.Nights[i].String()+".")
	}
	if len(found.Nights) == 0 && f.Current != nil {
		shown.Lines = append(shown.Lines, "No night up to now changes.")
	}
	if f.Action == Delete && f.Current.Type == roomsensor.Athlete {
		shown.Lines = append(shown.Lines, "Notes about the person that belong to this assignment are deleted too.")
	}
	for i := range found.OldStarts {
		start := found.OldStarts[i].StartedAt
		shown.Warnings = append(shown.Warnings, found.OldStarts[i].Label+" starts on "+clock(v, start)+", "+
			wording.Span(v.Now.Sub(start))+" ago. Check the date.")
		named = append(named, roomsensor.FormatTime(start))
	}
	for i := range found.Elsewhere {
		other := &found.Elsewhere[i]
		sentence := other.Label + " is open in " + wording.TextOr(other.DisplayName, other.HardwareID) + " " +
			period(v, &other.Assignment)
		if shown.Elsewhere {
			sentence += ": end that one?"
		} else {
			sentence += ", and stays open there."
		}
		shown.Warnings = append(shown.Warnings, sentence)
	}
	shown.Token = strings.Join(named, " ")
	return shown
}

// fieldNames are the columns of an assignment in words.
var fieldNames = map[string]string{
	"label": "Label", "type": "Type", "home_or_travel": "Location", "external_ref": "Reference", "started_at": "Start",
	"ended_at": "End",
}

// differences lists the fields that an edit changes.
func differences(v *page.Visit, before, after *roomsensor.Assignment) (changed []difference) {
	texts := func(a *roomsensor.Assignment) []string {
		end := "open"
		if a.EndedAt != nil {
			end = clock(v, *a.EndedAt)
		}
		ref := wording.TextOr(a.ExternalRef, "")
		return []string{a.Label, string(a.Type), string(a.HomeOrTravel), ref, clock(v, a.StartedAt), end}
	}
	old, now := texts(before), texts(after)
	for i, column := range []string{"label", "type", "home_or_travel", "external_ref", "started_at", "ended_at"} {
		if old[i] != now[i] {
			changed = append(changed, difference{fieldNames[column], old[i], now[i]})
		}
	}
	return changed
}
