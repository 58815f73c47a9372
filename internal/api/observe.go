package api

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"roomsensor/internal/problem"
)

// observe surrounds every request, also of unknown routes: it gives it an id,
// turns errors and panics into answers, and writes one line and the metrics
// when it ends.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := s.begin(c)
		defer s.end(request)
		if err := recovering(next, c); err != nil {
			request.err = err
			c.Error(err)
		}
		return nil
	}
}

func (s *server) begin(c echo.Context) *call {
	request := &call{
		Context:   c,
		requestID: problem.NewRequestID(),
		began:     time.Now(),
		left:      c.Request().Context().Err,
		rows:      -1,
	}
	c.Set(callKey, request)
	request.setHeader(problem.RequestIDHeader, request.requestID)
	if strings.Contains(c.Request().URL.Path, exportName) {
		// The URL may hold a key, also where the path is mistyped (decision 26).
		request.setHeader("Cache-Control", "no-store")
		request.setHeader("Referrer-Policy", "no-referrer")
	}
	return request
}

// panicError is a panic as an error; the stack is for the log alone.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func recovering(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return next(c)
}

// clientGone is what the log shows as the status of a request whose client did
// not wait for the answer.
const clientGone = 499

// end writes the canonical line of the request. It holds the route's template
// and never the URL, which may carry a key.
func (s *server) end(c *call) {
	took := time.Since(c.began)
	status := c.Response().Status
	if c.gone() {
		status = clientGone
	}
	route, method := c.template(), boundedMethod(c.Request().Method)
	s.metrics.observe(route, method, status, took)
	line := s.log.WithLevel(level(status, c))
	c.describe(line)
	line.Str("route", route).Str("method", method).Int("status", status).
		Dur("duration_ms", took).Int64("bytes", c.Response().Size).
		Str("request_id", c.requestID).Msg("request")
}

func level(status int, c *call) zerolog.Level {
	if status >= http.StatusInternalServerError || (c.err != nil && status == http.StatusOK) {
		return zerolog.ErrorLevel
	}
	return zerolog.InfoLevel
}

// describe adds what is known of some requests only.
func (c *call) describe(line *zerolog.Event) {
	if c.rows >= 0 {
		line.Int("rows", c.rows)
	}
	if c.key.ID != "" {
		line.Str("key_id", c.key.ID)
	}
	if c.err == nil {
		return
	}
	line.Str("code", string(answerTo(c.err).Code))
	if status := c.Response().Status; status >= http.StatusInternalServerError || status < http.StatusBadRequest {
		line.Err(c.err)
	}
	if panicked, ok := errors.AsType[*panicError](c.err); ok {
		line.Bytes("stack", panicked.stack)
	}
}

// template is the route as it was registered.
func (c *call) template() string {
	if path := c.Path(); path != "" {
		return path
	}
	return "unmatched"
}

// boundedMethod keeps made-up methods out of the metrics and the log.
func boundedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut,
		http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
