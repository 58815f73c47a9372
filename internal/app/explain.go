package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/schema"
)

// lookTimeout bounds looking for the cause of a failure.
const lookTimeout = 5 * time.Second

// explain turns what went wrong into a sentence that says what to do, where
// one is known.
func (o *Operator) explain(ctx context.Context, err error) error {
	var refused roomsensor.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case ctx.Err() != nil:
		return errInterrupted
	}
	return explainDatabase(ctx, o.url, err)
}

// explainDatabase says of an error of the database whether it is away or was
// never migrated.
func explainDatabase(ctx context.Context, url string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	pending, unreachable := schema.Pending(ctx, url)
	var busy *roomsensor.Error
	switch {
	case unreachable != nil:
		return refusef("The database cannot be used. Check that it runs and that --database-url (DATABASE_URL) is right: %v",
			unreachable)
	case pending:
		return errNotMigrated
	case errors.As(err, &busy):
		return refusef("The database was busy or away for a moment. Run the command again: %v", err)
	}
	return err
}

const (
	errNotMigrated roomsensor.RefusedError = "The database is not migrated to this version. Run roomsensor migrate up."
	errInterrupted roomsensor.RefusedError = "Interrupted. What was under way may or may not have been done."
)

func refusef(format string, args ...any) error {
	return roomsensor.RefusedError(fmt.Sprintf(format, args...))
}

// interrupted prefers the reason why something was stopped to how it failed of it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}
