package team

import (
	"context"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// Audit reads the audit log.
type Audit interface {
	// TeamAudit lists a page of the entries of a team, the newest first.
	TeamAudit(ctx context.Context, teamID uuid.UUID, q roomsensor.AuditQuery) ([]roomsensor.AuditEntry, error)
}

// auditEntries is how many entries a page has.
const auditEntries = 50

// auditView is the data of web/pages/audit.html.
type auditView struct {
	Actor, Object, From, To string // the filter, as entered
	Errors                  page.FormErrors
	Entries                 []auditRow
	Zone                    string
	Older                   string // position of the next page, or empty
	Filtered                bool
}

// auditRow is an entry.
type auditRow struct {
	roomsensor.AuditEntry

	Who         string
	What        string // such as "Changed device"
	Name        string
	OfDevice    string // name of the device, if the object is another one
	Differences []roomsensor.Difference
}

// ShowAudit shows a page of the audit log.
func (p *Pages) ShowAudit(ctx context.Context, v *page.Visit) error {
	query := v.Echo.QueryParams()
	view := auditView{
		Actor: strings.TrimSpace(query.Get("actor")), Object: strings.TrimSpace(query.Get("object")),
		From: query.Get("from"), To: query.Get("to"), Errors: page.FormErrors{}, Zone: v.Zone().String(),
	}
	view.Filtered = view.Actor+view.Object+view.From+view.To != ""
	entries, err := p.backend.TeamAudit(ctx, v.Team.ID, view.query(v, query))
	if err != nil {
		return err
	}
	if len(entries) > auditEntries {
		entries = entries[:auditEntries]
		last := &entries[auditEntries-1]
		view.Older = page.FormatPosition(last.At, last.ID)
	}
	for i := range entries {
		row, err := newAuditRow(v, &entries[i])
		if err != nil {
			return err
		}
		view.Entries = append(view.Entries, row)
	}
	return v.Render("audit", view)
}

// query returns the query of a page, with one entry more than it shows. It leaves out what is not valid, and adds a
// sentence about it.
func (view *auditView) query(v *page.Visit, query url.Values) roomsensor.AuditQuery {
	q := roomsensor.AuditQuery{Limit: auditEntries + 1}
	for _, text := range []struct {
		field, value string
		to           *string
	}{{"actor", view.Actor, &q.Actor}, {"object", view.Object, &q.Object}} {
		if utf8.RuneCountInString(text.value) > maxAuditText || !roomsensor.IsPlain(text.value) {
			view.Errors.Add(text.field, "Enter at most 200 characters of valid text.")
			continue
		}
		*text.to = text.value
	}
	q.Since, q.Until = view.day(v, "from", view.From, 0), view.day(v, "to", view.To, 1)
	if at, id, ok := page.ParsePosition(query.Get("before")); ok {
		q.After = &roomsensor.AuditPosition{At: at, ID: id}
	}
	return q
}

// maxAuditText bounds what people search for, in characters.
const maxAuditText = 200

// day returns the first instant of a day, or of the day some days after it; nil for no day.
func (view *auditView) day(v *page.Visit, field, text string, after int) *time.Time {
	if text == "" {
		return nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, v.Zone())
	if err != nil || day.Year() < 1 {
		view.Errors.Add(field, "Enter a date, such as 2026-01-31.")
		return nil
	}
	return new(day.AddDate(0, 0, after))
}

// actionTexts and objectTexts are the actions and objects in words.
var (
	actionTexts = map[roomsensor.AuditAction]string{
		roomsensor.AuditCreate: "Created", roomsensor.AuditChange: "Changed", roomsensor.AuditDelete: "Deleted",
	}
	objectTexts = map[string]string{
		"team": "the team", "device": "device", "installation": "unit", "assignment": "assignment", "api_key": "API key",
		"ingest_key": "upload credential", "user": "person", "membership": "membership of", "sign_in_link": "sign-in link of",
		"shared_link": "shared link", "source": "source", "alias": "alias of unit", "reject": "reject",
		"note": "note", "person": "personal data of", "readings": "readings of",
	}
)

// whoOf returns who made a change.
func whoOf(e *roomsensor.AuditEntry) string {
	switch e.Actor.Kind {
	case roomsensor.ActorPerson:
		return e.Actor.Name
	case roomsensor.ActorAPIKey:
		return "API key " + e.Actor.Name
	case roomsensor.ActorOperator:
		return "operator " + e.Actor.Name
	case roomsensor.ActorSQL:
	}
	return "database user " + e.Actor.Name
}

func newAuditRow(v *page.Visit, e *roomsensor.AuditEntry) (auditRow, error) {
	row := auditRow{
		AuditEntry: *e, Who: whoOf(e), What: actionTexts[e.Action] + " " + objectTexts[e.ObjectKind], Name: e.ObjectName,
	}
	if row.Name == "" {
		row.Name = e.ObjectID
	}
	if e.ObjectKind != "device" && e.ObjectKind != "readings" {
		row.OfDevice = e.DeviceName
	}
	var err error
	row.Differences, err = e.Differences()
	for i := range row.Differences {
		d := &row.Differences[i]
		d.Field, d.Before, d.After = fieldText(d.Field), localText(v, d.Before), localText(v, d.After)
	}
	return row, err
}

// fieldText returns a column in words: "Started at", "Tag floor".
func fieldText(column string) string {
	if key, ok := strings.CutPrefix(column, "metadata."); ok {
		return "Tag " + key
	}
	text := strings.NewReplacer("_", " ", ".", ": ").Replace(column)
	return strings.ToUpper(text[:1]) + text[1:]
}

// localText returns a time in the zone of the team, and any other text unchanged.
func localText(v *page.Visit, text *string) *string {
	if text == nil {
		return nil
	}
	if at, ok := roomsensor.ParseTime(*text); ok {
		return new(v.Time(at, "Mon 2 Jan 2006, 15:04:05"))
	}
	return text
}
