package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

// call is one request, its response, and what the access log reports about both.
type call struct {
	echo.Context
	requestID string
	began     time.Time
	span      httpedge.Span
	key       roomsensor.Key // set once the request is authenticated
	rows      int            // items in the response; -1 if it has none
	err       error          // the error of the handler, if it failed
	gone      bool           // whether the client had left when the handler failed
}

const callKey = "roomsensor.call"

func callOf(c echo.Context) *call {
	return c.Get(callKey).(*call) //nolint:forcetypeassert // observe sets it before anything else runs.
}

func (c *call) setHeader(name, value string) { c.Response().Header().Set(name, value) }

// observe wraps every request, including those of unknown routes: it assigns the request id, turns errors and panics
// into responses, and writes the access log and the metrics at the end.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := s.begin(ec)
		defer s.end(c)
		if err := panics.Recover(func() error { return next(ec) }); err != nil {
			if errors.Is(err, echo.ErrNotFound) {
				err = s.unknownPath(ec.Request().URL.Path)
			}
			c.err = err
			c.gone = errors.Is(ec.Request().Context().Err(), context.Canceled) || errors.Is(err, export.ErrNotReceived)
			ec.Error(err)
		}
		return nil
	}
}

func (s *server) begin(ec echo.Context) *call {
	c := &call{Context: ec, requestID: httpedge.NewRequestID(), began: time.Now(), rows: -1}
	ec.Set(callKey, c)
	r, span := httpedge.BeginSpan(s.tracer, ec.Request())
	ec.SetRequest(r)
	c.span = span
	s.metrics.Begin()
	c.setHeader(httpedge.RequestIDHeader, c.requestID)
	httpedge.SetSecurityHeaders(c.Response().Header()) // The pages of the docs replace the policy.
	inPath := func(export string) bool { return strings.Contains(ec.Request().URL.Path, "/"+export) }
	if slices.ContainsFunc(exportNames, inPath) {
		// The URL may hold a key, even if the path is mistyped (decision 26).
		c.setHeader("Cache-Control", "no-store")
		c.setHeader("Referrer-Policy", "no-referrer")
	}
	return c
}

// end writes the access-log line and the metrics of a request.
func (s *server) end(c *call) {
	entry := httpedge.AccessEntry{
		RequestID: c.requestID,
		TraceID:   c.span.TraceID(),
		Route:     c.Path(),
		Method:    httpedge.BoundedMethod(c.Request().Method),
		Status:    c.Response().Status,
		Duration:  time.Since(c.began),
		Bytes:     c.Response().Size,
		Rows:      c.rows,
		KeyID:     c.key.ID,
	}
	if entry.Route == "" {
		entry.Route = httpedge.UnmatchedRoute
	}
	if c.gone {
		entry.Status = httpedge.StatusClientGone
	}
	if c.err != nil {
		entry.Fail(c.err, publicError(c.err), c.Request(), s.clients(c.Request()))
	}
	s.metrics.End(&entry)
	entry.Log(s.access)
	c.span.End(&entry)
}

// abort ends a response that cannot be completed; it does not return.
func (c *call) abort() { httpedge.Abort(c.Response(), c.Request()) }
