// Package panics turns panics into errors, so that a bug fails one request or one statement and not the process.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic as an error. The stack is for the log only.
type Error struct {
	Value any
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recover calls f and returns its error, or its panic as an *Error.
func Recover(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return f()
}
