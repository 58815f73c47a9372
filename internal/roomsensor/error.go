package roomsensor

import (
	"errors"
	"fmt"
	"time"
)

// Error is the answer to a client whose request cannot be served. Message tells the client what to do (spec 7).
type Error struct {
	Code       Code
	Param      string // parameter, header or field at fault; empty if there is none
	Message    string
	RetryAfter time.Duration // 0 if waiting does not help
	Limit      string        // name of the limit that refuses the request, for the log; empty if none does
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NewError returns an Error; an empty param means none.
func NewError(code Code, param, message string) *Error {
	return &Error{Code: code, Param: param, Message: message}
}

// Invalid returns an Error with the code validation_failed, which covers all input without a code of its own.
func Invalid(param, message string) *Error {
	return NewError(CodeValidationFailed, param, message)
}

// ErrNotFound means that something does not exist or belongs to another team. The two are never distinguished.
var ErrNotFound = errors.New("not found")

// Kind names what a NotFoundError did not find.
type Kind string

// The kinds of things that operators name by an id.
const (
	KindTeam       Kind = "team"
	KindAPIKey     Kind = "API key"
	KindIngestKey  Kind = "ingest key"
	KindDevice     Kind = "device"
	KindAssignment Kind = "assignment"
	KindReject     Kind = "reject"
	KindSource     Kind = "source"
	KindUser       Kind = "user"
)

// NotFoundError is an ErrNotFound that says which id was not found, for an operator.
type NotFoundError struct {
	Kind Kind
	ID   string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s not found", e.Kind, e.ID) }

// Is makes a NotFoundError match ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// ErrBodyDiffers means that an Idempotency-Key was used with another request body before (spec 8).
var ErrBodyDiffers = errors.New("the Idempotency-Key was used with a different body")

// These are the failures of a write that concern a part of a batch: the rest may succeed without it. Every other
// failure concerns the whole database.
var (
	// ErrRefused means that the database refused a batch: it is too large or too slow for one transaction, or a trigger,
	// a damaged chunk or an unknown cause refuses a part of it.
	ErrRefused = errors.New("the database refused the batch")
	// ErrNotStorable is an ErrRefused because of a row that the database refuses at each attempt.
	ErrNotStorable = fmt.Errorf("%w permanently", ErrRefused)
	// ErrBlocked means that a lock, another transaction or a failed read or write of a file stopped a batch. That usually
	// passes, and then the same batch succeeds.
	ErrBlocked = errors.New("the batch was blocked in the database")
)
