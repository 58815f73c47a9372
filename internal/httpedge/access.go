package httpedge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

// RequestIDHeader carries the request id on every response (decision 8).
const RequestIDHeader = "X-Request-Id"

// NewRequestID returns a random id for one request. No part of it comes from the client (decision 8).
func NewRequestID() string { return "req_" + strings.ToLower(rand.Text()) }

// WithRequestID wraps a handler so that each of its responses carries a request id.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(RequestIDHeader, NewRequestID())
		next.ServeHTTP(w, r)
	})
}

// PanicError is a panic of a handler as an error. The stack is for the log only.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recover calls f and returns its error, or its panic as a *PanicError.
func Recover(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return f()
}

const (
	// UnmatchedRoute is the route of a request whose path the listener does not know.
	UnmatchedRoute = "unmatched"
	// StatusClientGone is logged instead of the status if the client left before the response was complete.
	StatusClientGone = 499
)

// AccessEntry is the one log line of a request. Every process logs the same fields: request_id, route, method, status,
// duration_ms, bytes, rows, key_id, code and error, and the stack of a panic.
type AccessEntry struct {
	RequestID string
	Route     string // the template, never the URL, which may carry a key; or UnmatchedRoute
	Method    string
	Status    int
	Duration  time.Duration
	Bytes     int64           // of the payload: of the API's response as sent, or of a received body when decompressed
	Rows      int             // items in the payload: readings, devices or uploads; -1 if the payload has none
	KeyID     string          // empty if the request was not authenticated
	Code      roomsensor.Code // of the error that the client saw; empty on success
	Err       error           // the cause; logged unless the client alone is at fault
}

// Log writes the entry: a 5xx and a response that broke off at level error, all others at level info.
func (e *AccessEntry) Log(log zerolog.Logger) {
	line := log.WithLevel(e.level()).
		Str("request_id", e.RequestID).Str("route", e.Route).Str("method", BoundedMethod(e.Method)).
		Int("status", e.Status).Dur("duration_ms", e.Duration).Int64("bytes", e.Bytes)
	if e.Rows >= 0 {
		line.Int("rows", e.Rows)
	}
	if e.KeyID != "" {
		line.Str("key_id", e.KeyID)
	}
	if e.Code != "" {
		line.Str("code", string(e.Code))
	}
	if e.Err != nil && (e.failed() || e.Status == StatusClientGone) {
		line.Err(e.Err)
	}
	if panicked, ok := errors.AsType[*PanicError](e.Err); ok {
		line.Bytes("stack", panicked.Stack)
	}
	line.Msg("request")
}

// failed reports whether the service failed: with a 5xx, or in the middle of a response that began as a success.
func (e *AccessEntry) failed() bool {
	return e.Status >= http.StatusInternalServerError || (e.Err != nil && e.Status < http.StatusBadRequest)
}

func (e *AccessEntry) level() zerolog.Level {
	if e.failed() {
		return zerolog.ErrorLevel
	}
	return zerolog.InfoLevel
}

// BoundedMethod returns the method, or "other" for one that no listener knows, so that clients cannot put made-up words
// into logs and metrics.
func BoundedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut,
		http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
