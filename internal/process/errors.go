package process

import (
	"context"
	"fmt"
)

// RefusedError is why an operator's command was not carried out, in full sentences that say what to do.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// ErrInterrupted is returned when SIGINT or SIGTERM ends an operator's command before its result is known.
const ErrInterrupted RefusedError = "Interrupted. The operation may or may not have taken effect."

// Refusef returns a RefusedError: one or more full sentences for an operator that say what to do.
func Refusef(format string, args ...any) error {
	return RefusedError(fmt.Sprintf(format, args...))
}

// Interrupted returns ErrInterrupted if ctx was canceled, else err.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}
