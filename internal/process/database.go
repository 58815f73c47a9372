package process

import (
	"context"
	"errors"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
)

// diagnoseTimeout bounds the check of the database after a failure.
const diagnoseTimeout = 5 * time.Second

const errNotMigrated RefusedError = "" +
	"The database is not migrated to this version. Run roomsensor migrate up."

// ErrOldDatabase refuses a database that no migration leads from.
const ErrOldDatabase RefusedError = "" +
	"The database is from before the first release, and no migration leads from there to this version. Nothing was " +
	"changed. Create an empty database, such as with createdb NAME, set --database-url (DATABASE_URL) to it, " +
	"and run roomsensor migrate up."

// ExplainDatabase checks whether the database is unavailable, not migrated or overloaded, and returns an error that
// says so. Any other error is returned unchanged.
func ExplainDatabase(ctx context.Context, url string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	pending, unreachable := schema.Pending(ctx, url)
	var overloaded *roomsensor.Error
	refusal := pg.Refusal(unreachable)
	switch {
	case errors.Is(unreachable, schema.ErrBeforeFirstRelease):
		return ErrOldDatabase
	case refusal != "":
		return Refusef("The database cannot be used, because it %s. The error was: %v", refusal, unreachable)
	case unreachable != nil:
		return Refusef(
			"The database cannot be used. Check that it runs and that --database-url (DATABASE_URL) is right: %v", unreachable)
	case pending:
		return errNotMigrated
	case errors.As(err, &overloaded):
		return Refusef("The database was overloaded or unavailable. Run the command again: %v", err)
	}
	return err
}
