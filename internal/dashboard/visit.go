package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// visit is one request of a person. team and role are zero on pages without a team, user on public pages if nobody is
// signed in.
type visit struct {
	server *server
	echo   echo.Context
	ctx    context.Context //nolint:containedctx // It has the session, and a visit is one request.
	user   roomsensor.User
	team   roomsensor.TeamSettings
	role   roomsensor.Role
	now    time.Time
	stream bool
}

// formErrors has a full sentence that says what to do for each field that is not valid.
type formErrors map[string]string

// add adds the error of a field, unless it has one. An empty sentence means none.
func (e formErrors) add(field, sentence string) {
	if _, known := e[field]; !known && sentence != "" {
		e[field] = sentence
	}
}

// addRule adds the error of a rule to the field that it names.
func (e formErrors) addRule(err error) {
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok {
		e.add(rule.Param, rule.Message)
	}
}

// addCheck adds the error of a check, such as roomsensor.CheckName, if there is one. It continues the sentence that
// subject begins.
func (e formErrors) addCheck(field, subject string, err error) {
	if err != nil {
		e.add(field, subject+" "+err.Error()+".")
	}
}

// sendFile answers with a file that a browser saves and never shows.
func (v *visit) sendFile(name, contentType string, body []byte) error {
	header := v.echo.Response().Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	return httpedge.WriteBody(v.echo.Response(), v.echo.Request(), http.StatusOK, body)
}

// render answers with a page of web/pages.
func (v *visit) render(page string, data any) error { return v.write(http.StatusOK, page, data) }

// invalid answers with the same page again, which shows the form as entered and its errors.
func (v *visit) invalid(page string, data any) error {
	return v.write(http.StatusUnprocessableEntity, page, data)
}

// write answers with a page, compressed if the browser accepts it.
func (v *visit) write(status int, page string, data any) error {
	buffer := httpedge.GetBuffer()
	defer httpedge.PutBuffer(buffer)
	body, err := v.server.templates.render(*buffer, v, page, data)
	*buffer = body
	if err != nil {
		return err
	}
	response := v.echo.Response()
	response.Header().Set("Content-Type", "text/html; charset=utf-8")
	coding := httpedge.ChooseCoding(response, v.echo.Request())
	if coding == compress.Identity {
		return httpedge.WriteBody(response, v.echo.Request(), status, body)
	}
	compressed := httpedge.GetBuffer()
	defer httpedge.PutBuffer(compressed)
	if *compressed, err = compress.Append(*compressed, body, coding); err != nil {
		return err
	}
	response.Header().Set("Content-Encoding", string(coding))
	return httpedge.WriteBody(response, v.echo.Request(), status, *compressed)
}

// redirect makes the browser open a path of this site, after a form was accepted. The message, if there is one, is
// shown there once.
func (v *visit) redirect(path, message string) error {
	if message != "" {
		v.server.sessions.put(v.ctx, messageKey, message)
	}
	return v.echo.Redirect(http.StatusSeeOther, path) //nolint:wrapcheck // It fails only for another status.
}

// path returns the path of a page of the team, such as /teams/<team_id>/devices/<device_id>.
func (v *visit) path(elements ...string) string {
	path := []string{"/teams", v.team.ID.String()}
	for _, element := range elements {
		path = append(path, url.PathEscape(element))
	}
	return strings.Join(path, "/")
}

// id returns a parameter of the path that is an id. A malformed id is like one that does not exist.
func (v *visit) id(parameter string) (uuid.UUID, error) {
	id, err := uuid.Parse(v.echo.Param(parameter))
	if err != nil || len(v.echo.Param(parameter)) != len(uuid.Nil.String()) {
		return uuid.Nil, roomsensor.ErrNotFound
	}
	return id, nil
}

// formatPosition returns the position of an entry in a list by time, for a link or a form.
func formatPosition(at time.Time, id uuid.UUID) string {
	return roomsensor.FormatTime(at) + "," + id.String()
}

// parsePosition reads what formatPosition returned.
func parsePosition(text string) (at time.Time, id uuid.UUID, ok bool) {
	first, second, _ := strings.Cut(text, ",")
	at, ok = roomsensor.ParseTime(first)
	id, err := uuid.Parse(second)
	return at, id, ok && err == nil
}

// form returns a field of a posted form without white space around it, or "" if it was not sent or is not valid UTF-8.
// The password fields keep their white space: see secret.
func (v *visit) form(name string) string { return strings.TrimSpace(v.secret(name)) }

// secret returns a field of a posted form exactly as it was entered.
func (v *visit) secret(name string) string {
	text := v.echo.Request().PostFormValue(name)
	if !roomsensor.IsPlain(text) {
		return ""
	}
	return text
}

// checkForm returns an error if the form is too large or malformed. Handlers of forms call it before form.
func (v *visit) checkForm() error {
	if err := v.echo.Request().ParseForm(); err != nil {
		return fmt.Errorf("reading a form: %w", formError(err))
	}
	return nil
}

// localTime returns the time of the field at, which is in the zone of the team, or nil if it is empty. It adds an error
// for a time in the future, and for a text that is none.
func (v *visit) localTime(text string, errs formErrors) *time.Time {
	if text == "" {
		return nil
	}
	at, err := roomsensor.ParseLocal("at", text, v.zone())
	if err != nil {
		errs.addRule(err)
		return nil
	}
	if _, err := roomsensor.EffectiveTime(&at, v.now); err != nil {
		errs.add("at", "This time is in the future. Enter a time up to now, or leave the field empty.")
		return nil
	}
	return &at
}

// effectiveTime is localTime for a change that takes effect now if the field is empty.
func (v *visit) effectiveTime(text string, errs formErrors) time.Time {
	at, _ := roomsensor.EffectiveTime(v.localTime(text, errs), v.now) // localTime returns none in the future.
	return at
}
