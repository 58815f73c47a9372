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
