package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/timezone"
)

// Visit is one request of a person. Team and Role are zero on pages without a team, User on public pages if nobody is
// signed in.
type Visit struct {
	Echo echo.Context
	User accounts.User
	Team accounts.TeamSettings
	Role roomsensor.Role
	Now  time.Time

	site    *Site
	refused bool            // whether the answer is a form that was not saved
	ctx     context.Context //nolint:containedctx // It has the session, and a visit is one request.
}

// FormErrors has a full sentence that says what to do for each field that is not valid.
type FormErrors map[string]string

// Add adds the error of a field, unless it has one. An empty sentence means none.
func (e FormErrors) Add(field, sentence string) {
	if _, known := e[field]; !known && sentence != "" {
		e[field] = sentence
	}
}

// AddRule adds the error of a rule to the field that it names.
func (e FormErrors) AddRule(err error) {
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok {
		e.Add(rule.Param, rule.Message)
	}
}

// Message returns the sentence of an error of a rule; any other error has none.
func Message(err error) string {
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok {
		return rule.Message
	}
	return ""
}

// AddCheck adds the error of a check, such as roomsensor.CheckName, if there is one. It continues the sentence that
// subject begins.
func (e FormErrors) AddCheck(field, subject string, err error) {
	if err != nil {
		e.Add(field, subject+" "+err.Error()+".")
	}
}

// ReadZone returns the time zone that a person wrote in the field time_zone, also by its city, or nil with an error.
func (e FormErrors) ReadZone(text string) *time.Location {
	zone, known := timezone.Find(text)
	if !known {
		e.Add("time_zone", "Choose a time zone from the list, such as Europe/Berlin. "+
			httpedge.DidYouMean(httpedge.Closest(text, timezone.Names())))
		return nil
	}
	return zone
}

// Sources lists the sources of a team.
type Sources interface {
	TeamSources(ctx context.Context, teamID uuid.UUID) ([]roomsensor.ListedSource, error)
}

// FindSource returns the source of the team with an id, or ErrNotFound.
func (v *Visit) FindSource(ctx context.Context, sources Sources, id string) (*roomsensor.ListedSource, error) {
	all, err := sources.TeamSources(ctx, v.Team.ID)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(s roomsensor.ListedSource) bool { return s.ID.String() == id })
	if at < 0 {
		return nil, roomsensor.ErrNotFound
	}
	return &all[at], nil
}

// Audit reads the audit log.
type Audit interface {
	TeamAudit(ctx context.Context, teamID uuid.UUID, q roomsensor.AuditQuery) ([]roomsensor.AuditEntry, error)
}

// AcceptDeleted returns the error of a deletion, or nil if the object was deleted before: a form may be sent again.
func (v *Visit) AcceptDeleted(ctx context.Context, audit Audit, id uuid.UUID, err error) error {
	if !errors.Is(err, roomsensor.ErrNotFound) {
		return err
	}
	entries, auditErr := audit.TeamAudit(ctx, v.Team.ID, roomsensor.AuditQuery{Object: id.String(), Limit: 1})
	if auditErr != nil || len(entries) == 0 {
		return errors.Join(err, auditErr)
	}
	return nil
}

// SendFile answers with a file that a browser saves and never shows.
func (v *Visit) SendFile(name, contentType string, body []byte) error {
	header := v.Echo.Response().Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	return httpedge.WriteBody(v.Echo.Response(), v.Echo.Request(), http.StatusOK, body)
}

// Render answers with a page of web/pages.
func (v *Visit) Render(page string, data any) error { return v.Write(http.StatusOK, page, data) }

// Invalid answers with the same page again, which shows the form as entered and its errors. The first field with an
// error gets the focus, and a page whose form was posted says at its top that nothing was saved.
func (v *Visit) Invalid(page string, data any) error {
	v.refused = v.Echo.Request().Method == http.MethodPost
	return v.Write(http.StatusUnprocessableEntity, page, data)
}

// invalidField is the attribute with which templates mark a field that has an error.
const invalidField = `aria-invalid="true"`

// Write answers with a page, compressed if the browser accepts it.
func (v *Visit) Write(status int, page string, data any) error {
	buffer := httpedge.GetBuffer()
	defer httpedge.PutBuffer(buffer)
	body, err := v.site.templates.execute(*buffer, v, page, "layout.html", v.view(data))
	if status == http.StatusUnprocessableEntity {
		body = bytes.Replace(body, []byte(invalidField), []byte(invalidField+" autofocus"), 1)
	}
	*buffer = body
	if err != nil {
		return err
	}
	response := v.Echo.Response()
	response.Header().Set("Content-Type", "text/html; charset=utf-8")
	coding := httpedge.ChooseCoding(response, v.Echo.Request())
	return httpedge.WriteCompressed(response, v.Echo.Request(), status, body, coding)
}

// Redirect makes the browser open a path of this site, after a form was accepted. The message, if there is one, is
// shown there once.
func (v *Visit) Redirect(path, message string) error {
	if message != "" {
		v.site.sessions.manager.Put(v.ctx, messageKey, message)
	}
	return v.Echo.Redirect(http.StatusSeeOther, path) //nolint:wrapcheck // It fails only for another status.
}

// Path returns the path of a page of the team, such as /teams/<team_id>/devices/<device_id>.
func (v *Visit) Path(elements ...string) string {
	path := []string{"/teams", v.Team.ID.String()}
	for _, element := range elements {
		path = append(path, url.PathEscape(element))
	}
	return strings.Join(path, "/")
}

// ID returns a parameter of the path that is an id. A malformed id is like one that does not exist.
func (v *Visit) ID(parameter string) (uuid.UUID, error) {
	id, err := uuid.Parse(v.Echo.Param(parameter))
	if err != nil || len(v.Echo.Param(parameter)) != len(uuid.Nil.String()) {
		return uuid.Nil, roomsensor.ErrNotFound
	}
	return id, nil
}

// FormatPosition returns the position of an entry in a list by time, for a link or a form.
func FormatPosition(at time.Time, id uuid.UUID) string {
	return roomsensor.FormatTime(at) + "," + id.String()
}

// ParsePosition reads what FormatPosition returned.
func ParsePosition(text string) (at time.Time, id uuid.UUID, ok bool) {
	first, second, _ := strings.Cut(text, ",")
	at, ok = roomsensor.ParseTime(first)
	id, err := uuid.Parse(second)
	return at, id, ok && err == nil
}

// Form returns a field of a posted form without white space around it, or "" if it was not sent or is not valid UTF-8.
// The password fields keep their white space: see Secret.
func (v *Visit) Form(name string) string { return strings.TrimSpace(v.Secret(name)) }

// Secret returns a field of a posted form exactly as it was entered.
func (v *Visit) Secret(name string) string {
	text := v.Echo.Request().PostFormValue(name)
	if !roomsensor.IsPlain(text) {
		return ""
	}
	return text
}

// PastTime returns the time in a field, which is in the zone of the team, or nil if it is empty. It adds an error for a
// time in the future or before 2015, and for a text that is not a time.
func (v *Visit) PastTime(field, text string, errs FormErrors) *time.Time {
	if text == "" {
		return nil
	}
	at, err := roomsensor.ParseLocal(field, text, v.Zone())
	if err != nil {
		errs.AddRule(err)
		return nil
	}
	if _, err := roomsensor.EffectiveTime(&at, v.Now); err != nil {
		errs.Add(field, "This time "+err.Error()+".")
		return nil
	}
	return &at
}

// EffectiveTime is PastTime of the field at for a change that takes effect now if the field is empty.
func (v *Visit) EffectiveTime(text string, errs FormErrors) time.Time {
	at, _ := roomsensor.EffectiveTime(v.PastTime("at", text, errs), v.Now) // PastTime has refused other times.
	return at
}

// Client returns the address of the client.
func (v *Visit) Client() string { return v.site.clients(v.Echo.Request()) }
