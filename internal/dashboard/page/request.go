package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

// policy is the Content-Security-Policy of every response: nothing but files of the dashboard itself, no inline script
// or style, no embedding into other pages.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// request is what the access log reports about a request.
type request struct {
	id      string
	began   time.Time
	span    httpedge.Span
	visit   *Visit    // nil before the checks, and if they refused the request early
	entered uuid.UUID // the person whom the request signed in, or uuid.Nil
	err     error     // the error of the handler, if it failed
	gone    bool      // whether the client had left when the handler failed
}

const requestKey = "roomsensor.request"

func requestOf(c echo.Context) *request {
	return c.Get(requestKey).(*request) //nolint:forcetypeassert // observe sets it before anything else runs.
}

// observe wraps every request, including those of unknown paths: it assigns the request id, turns errors and panics
// into pages, and writes the access log and the metrics at the end.
func (s *Site) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := &request{id: httpedge.NewRequestID(), began: time.Now()}
		c.Set(requestKey, r)
		traced, Span := httpedge.BeginSpan(s.tracer, c.Request())
		c.SetRequest(traced)
		r.span = Span
		setSecurityHeaders(c, r.id)
		s.metrics.Begin()
		defer s.end(c, r)
		err := httpedge.CheckBody(c.Request())
		if err == nil {
			err = panics.Recover(func() error { return next(c) })
		}
		if err != nil {
			r.err = err
			r.gone = errors.Is(c.Request().Context().Err(), context.Canceled) || errors.Is(err, export.ErrNotReceived)
			c.Error(err)
		}
		return nil
	}
}

func setSecurityHeaders(c echo.Context, requestID string) {
	h := c.Response().Header()
	h.Set(httpedge.RequestIDHeader, requestID)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // Links of invitations contain a secret.
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store") // Pages belong to one person.
}

// end writes the access-log line and the metrics of a request.
func (s *Site) end(c echo.Context, r *request) {
	entry := httpedge.AccessEntry{
		RequestID: r.id,
		TraceID:   r.span.TraceID(),
		Route:     c.Path(),
		Method:    c.Request().Method,
		Status:    c.Response().Status,
		Duration:  time.Since(r.began),
		Bytes:     c.Response().Size,
		Rows:      -1,
	}
	if entry.Route == "" {
		entry.Route = httpedge.UnmatchedRoute
	}
	user := r.entered
	if user == uuid.Nil && r.visit != nil {
		user = r.visit.User.ID
	}
	if user != uuid.Nil {
		entry.UserID = user.String()
	}
	if r.gone {
		entry.Status = httpedge.StatusClientGone
	}
	switch {
	case r.err != nil:
		entry.Fail(r.err, publicError(r.err), c.Request(), s.clients(c.Request()))
	case entry.Status >= http.StatusBadRequest:
		entry.Refuse(c.Request(), s.clients(c.Request()))
	}
	s.metrics.End(&entry)
	entry.Log(s.access)
	r.span.End(&entry)
}

// refuseOtherSites refuses forms that a page of another site sends (CSRF).
func (s *Site) refuseOtherSites(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.csrf.Check(c.Request()); err != nil {
			return errOtherSite
		}
		return next(c)
	}
}

// errOtherSite refuses a form that was sent from another site.
var errOtherSite = roomsensor.NewError(roomsensor.CodeInsufficientScope, "",
	"This form was sent from another site. Open the page in the dashboard and send the form there.")
