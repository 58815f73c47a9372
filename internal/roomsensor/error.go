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
)

// NotFoundError is an ErrNotFound that says which id was not found, for an operator.
type NotFoundError struct {
	Kind Kind
	ID   string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s not found", e.Kind, e.ID) }

// Is makes a NotFoundError match ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// These are the failures of a write that the same write would meet again. Every other failure of the database may pass.
var (
	// ErrBodyDiffers means that an Idempotency-Key was used with another request body before (spec 8).
	ErrBodyDiffers = errors.New("the Idempotency-Key was used with a different body")
	// ErrNotStorable means that the database permanently refuses a row of a batch.
	ErrNotStorable = errors.New("the database refused the data")
	// ErrTooMuch means that a batch is too large or too slow for one transaction; smaller parts of it may succeed.
	ErrTooMuch = errors.New("the batch is too much for one transaction")
)
