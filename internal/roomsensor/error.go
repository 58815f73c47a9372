package roomsensor

import (
	"errors"
	"time"
)

// ErrNotFound says that something is not there, or is not the team's: the two
// are told apart nowhere.
var ErrNotFound = errors.New("not found")

// Error is an answer to a client that did something the service cannot do.
// Message states the fix (spec 7).
type Error struct {
	Code       Code
	Param      string // the rejected parameter, header or field; empty where there is none
	Message    string
	RetryAfter time.Duration // 0 where waiting does not help
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NewError makes an Error; an empty param means none.
func NewError(code Code, param, message string) *Error {
	return &Error{Code: code, Param: param, Message: message}
}

// Invalid is validation_failed, the generic rejection of input.
func Invalid(param, message string) *Error {
	return NewError(CodeValidationFailed, param, message)
}

// The three ways in which a write can fail for good or for its size. Every
// other failure of the database may pass.
var (
	// ErrBodyDiffers says that an Idempotency-Key came with another body before (spec 8).
	ErrBodyDiffers = errors.New("the Idempotency-Key was used with a different body")
	// ErrNotStorable says that the database refused a row for good.
	ErrNotStorable = errors.New("the database refused the data")
	// ErrTooMuch says that a batch was too large or too slow; parts of it may pass.
	ErrTooMuch = errors.New("the batch is too much for one transaction")
)

// RefusedError says why an operator's command was not carried out, in a
// sentence that says what to do.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }
