package page

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// The errors that people see. None of them repeats details of a failure.
var (
	errNoPage = roomsensor.NewError(roomsensor.CodeNotFound, "",
		"This page does not exist, or your team has no access to it. Check the address, or start at your team's overview.")
	errWrongMethod = roomsensor.NewError(roomsensor.CodeMethodNotAllowed, "",
		"This page cannot be used in this way. Open it from the navigation.")
	errTooLarge = roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
		"The form is too large. Enter less text and send it again.")
	// ErrMalformed refuses a form that cannot be read, or that no page sends.
	ErrMalformed = roomsensor.NewError(roomsensor.CodeValidationFailed, "",
		"The form could not be read. Open the page again and send it once more.")
)

// publicError returns the error that a person may see.
func publicError(err error) *roomsensor.Error {
	var routing *echo.HTTPError
	switch {
	case errors.Is(err, ErrSignedOut):
		return roomsensor.NewError(roomsensor.CodeInsufficientScope, "", "Sign in first.")
	case errors.Is(err, roomsensor.ErrNotFound), errors.Is(err, echo.ErrNotFound):
		return errNoPage
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return errWrongMethod
	}
	return httpedge.PublicError(err)
}

// errorView is the data of the error page.
type errorView struct {
	Title, Message, RequestID string
	Failed                    bool // the service is at fault, so that the request id helps
}

var errorTitles = map[int]string{
	http.StatusBadRequest:            "This did not work",
	http.StatusForbidden:             "Not allowed",
	http.StatusNotFound:              "Page not found",
	http.StatusMethodNotAllowed:      "This did not work",
	http.StatusRequestEntityTooLarge: "Too much text",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusServiceUnavailable:    "Temporarily unavailable",
}

// fail answers with the page of an error, or with the sign-in page if the person is signed out. A response that has
// begun cannot be changed any more; its connection is broken.
func (s *Site) fail(err error, c echo.Context) {
	if c.Response().Committed {
		httpedge.Abort(c.Response(), c.Request())
	}
	if errors.Is(err, ErrSignedOut) {
		_ = c.Redirect(http.StatusSeeOther, s.signInPath(c))
		return
	}
	r, public := requestOf(c), publicError(err)
	status := public.Code.Status()
	httpedge.SetErrorHeaders(c.Response().Header(), public)
	v := r.visit
	if v == nil {
		v = &Visit{site: s, Echo: c, ctx: c.Request().Context(), Now: s.now()}
	}
	view := errorView{
		Title: errorTitles[status], Message: public.Message,
		RequestID: r.id, Failed: status >= http.StatusInternalServerError,
	}
	if view.Title == "" {
		view.Title = "Something went wrong"
		view.Message = "The dashboard failed. Try again; if it persists, tell your operator the request id below."
	}
	if err := v.Write(status, "error", view); err != nil {
		httpedge.Abort(c.Response(), c.Request())
	}
}

// signInPath returns the address of the sign-in page, which returns to the page that was asked for. A form that was
// posted is kept for a while, if it can be.
func (s *Site) signInPath(c echo.Context) string {
	r := c.Request()
	if r.Method == http.MethodPost {
		ended := "lost"
		if s.keepForm(c) {
			ended = "kept"
		}
		return "/sign-in?" + url.Values{"next": {s.pageOf(c)}, "ended": {ended}}.Encode()
	}
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return "/sign-in"
	}
	return "/sign-in?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
}
