package assignments

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// explain adds the sentence about a conflict, which names the other assignment and its times.
func (p *Pages) explain(
	ctx context.Context, v *page.Visit, f *form, c *roomsensor.AssignmentConflictError,
) (err error) {
	a := &c.Assignment
	switch c.Conflict {
	case roomsensor.AssignmentOverlaps:
		device, err := p.deviceName(ctx, v, a.DeviceID)
		f.explainOverlap(v, device, a)
		return err
	case roomsensor.AssignmentStartedLater:
		field := "at"
		if f.Action == Edit {
			field = "ended_at"
		}
		f.Errors.Add(field, "“"+a.Label+"” started on "+clock(v, a.StartedAt)+". Enter a later time.")
	case roomsensor.AssignmentEnded:
		f.Conflict = "“" + a.Label + "” ended already, on " + clock(v, *a.EndedAt) + ". Nothing was changed."
	case roomsensor.AssignmentChanged:
		f.Conflict, err = p.explainChange(ctx, v, f)
		f.Current = a
		f.Values["version"] = versionOf(v, a)
	}
	return err
}

func (f *form) explainOverlap(v *page.Visit, device string, a *roomsensor.Assignment) {
	open := device + " has the open assignment “" + a.Label + "” since " + clock(v, a.StartedAt) + ". "
	had := device + " had the assignment “" + a.Label + "” from " + period(v, a) + ". "
	switch {
	case f.Action == Edit && a.StartedAt.After(f.Current.StartedAt):
		sentence := had
		if a.EndedAt == nil {
			sentence = open
		}
		f.Errors.Add("ended_at", sentence+"Enter its start or an earlier time.")
	case f.Action == Edit && a.EndedAt != nil:
		f.Errors.Add("started_at", had+"Enter its end or a later time.")
	case f.Action == Edit:
		f.Errors.Add("started_at", open+"Edit or end that one first.")
	case a.EndedAt == nil:
		f.Conflict = open + "End or transfer that one."
	default:
		f.Errors.Add("at", had+"Enter its end or a later time.")
	}
}

// maxExplained is how many changes of others a sentence names.
const maxExplained = 3

// explainChange returns a sentence about what others changed since the assignment was shown.
func (p *Pages) explainChange(ctx context.Context, v *page.Visit, f *form) (string, error) {
	shown, _, _ := strings.Cut(f.Values["version"], ",")
	since, ok := roomsensor.ParseTime(shown)
	if !ok || v.Now.Sub(since) > deletedFor {
		since = v.Now.Add(-deletedFor)
	}
	entries, err := p.backend.TeamAudit(ctx, v.Team.ID, roomsensor.AuditQuery{
		Object: f.Current.ID.String(), Since: &since, Limit: maxExplained,
	})
	if err != nil {
		return "", err
	}
	sentences := []string{"This assignment changed meanwhile."}
	for i := range entries {
		changed, err := entries[i].Differences()
		if err != nil {
			return "", err
		}
		var fields []string
		for _, d := range changed {
			fields = append(fields, fieldNames[d.Field]+" from "+sideOf(v, d.Before)+" to "+sideOf(v, d.After))
		}
		sentences = append(sentences, entries[i].Actor.Name+" changed "+strings.Join(fields, ", ")+".")
	}
	sentences = append(sentences, "Below is what you entered. Save it if it is still right.")
	return strings.Join(sentences, " "), nil
}

// sideOf returns a side of a difference, with times in the zone of the team.
func sideOf(v *page.Visit, text *string) string {
	if text == nil {
		return "none"
	}
	if at, ok := roomsensor.ParseTime(*text); ok {
		return clock(v, at)
	}
	return "“" + *text + "”"
}

// deletedFor limits the age of a change of which pages say who made it.
const deletedFor = 7 * 24 * time.Hour

// explainDeletion returns an error that says who deleted an assignment, or the given one.
func (p *Pages) explainDeletion(ctx context.Context, v *page.Visit, id uuid.UUID, missing error) error {
	since := v.Now.Add(-deletedFor)
	entries, err := p.backend.TeamAudit(ctx, v.Team.ID, roomsensor.AuditQuery{
		Object: id.String(), Since: &since, Limit: 1,
	})
	if err != nil || len(entries) == 0 || entries[0].Action != roomsensor.AuditDelete {
		return missing
	}
	deleted := &entries[0]
	return roomsensor.NewError(roomsensor.CodeNotFound, "", deleted.Actor.Name+" deleted the assignment “"+
		deleted.ObjectName+"” on "+clock(v, deleted.At.Truncate(time.Minute))+". Nothing was saved.")
}
