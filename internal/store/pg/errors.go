package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/roomsensor"
)

// RetryAfter is the Retry-After of a response while the database is overloaded or unavailable.
const RetryAfter = 2 * time.Second

// The SQLSTATEs and constraints whose meaning does not follow from their class.
const (
	StateLockNotAvailable  = "55P03"
	StateDeadlock          = "40P01"
	StateSerialization     = "40001"
	StateQueryCanceled     = "57014"
	stateTooMuchDecompress = "53400"
	stateOutOfMemory       = "53200" // Also: more locks than max_locks_per_transaction allows.
	stateReadOnly          = "25006"
	StateExclusion         = "23P01"
	stateForeignKey        = "23503"
	stateDenied            = "42501"
	StateUnique            = "23505"

	ConstraintUnitInOneDevice  = "device_hardware_one_device"
	ConstraintDeviceHasOneUnit = "device_hardware_one_unit"
	ConstraintSourceName       = "sources_name_key"
)

// transientClasses are the classes of SQLSTATE that do not depend on the request: connection, serialization, resources,
// operator intervention, system.
var transientClasses = []string{"08", "40", "53", "57", "58"}

// Translate maps an error of the driver to the domain; this is the only place that does. An error that may pass becomes
// overloaded. The cause stays in the chain, for the log.
func Translate(err error) error {
	var pgErr *pgconn.PgError
	var known *roomsensor.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &known):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return roomsensor.ErrNotFound
	case errors.As(err, &pgErr):
		if isTransient(pgErr.Code) {
			return Overloaded(err)
		}
		return err
	case isConnectionError(err):
		return Overloaded(err)
	}
	return err
}

// IsDenied reports whether the role lacks a right.
func IsDenied(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == stateDenied
}

func isTransient(state string) bool {
	if state == StateLockNotAvailable || state == stateReadOnly {
		return true // A primary that was just demoted is read-only.
	}
	return inClass(state, transientClasses...)
}

func inClass(state string, classes ...string) bool {
	return slices.ContainsFunc(classes, func(class string) bool { return strings.HasPrefix(state, class) })
}

// isConnectionError reports whether the server did not answer at all.
func isConnectionError(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

// Overloaded returns the error of a database that is unavailable or too busy, with its cause.
func Overloaded(cause error) error {
	answer := roomsensor.CodeOverloaded.New()
	answer.RetryAfter = RetryAfter
	return fmt.Errorf("%w: %w", cause, answer) // A log shows the beginning.
}

// TranslateWrite maps an error of a batch write. ErrNotStorable, ErrRefused and ErrBlocked concern some part of the
// batch; every other error concerns the whole database, and the same batch may succeed later. A SQLSTATE that is not
// listed here, such as that of a trigger or a damaged chunk, is ErrRefused, so that it cannot keep the rest of a batch
// out.
func TranslateWrite(err error) error {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !answered || connecting {
		return Translate(err)
	}
	switch state := pgErr.Code; {
	case state == StateUnique, state == StateLockNotAvailable, inClass(state, "40", "58"):
		// A unique violation: another worker stored the same rows first in every attempt, see writeAttempts.
		return fmt.Errorf("%w: %w", roomsensor.ErrBlocked, Overloaded(err))
	case inClass(state, "22", "23"):
		if pgErr.ConstraintName != "" {
			err = &constraintError{err, pgErr.ConstraintName}
		}
		return fmt.Errorf("%w: %w", roomsensor.ErrNotStorable, err)
	case state != stateTooMuchDecompress && state != StateQueryCanceled && state != stateOutOfMemory && isTransient(state):
		return Overloaded(err)
	}
	return fmt.Errorf("%w: %w", roomsensor.ErrRefused, err)
}

// constraintError is the error of rows that a constraint refuses.
type constraintError struct {
	error
	constraint string
}

func (c *constraintError) Unwrap() error { return c.error }

// Constraint returns the name of the constraint.
func (c *constraintError) Constraint() string { return c.constraint }

// ChangedRow returns the error of a statement, or ErrNoRows if it changed no row.
func ChangedRow(rows int64, err error) error {
	if err == nil && rows == 0 {
		return pgx.ErrNoRows
	}
	return err
}

// TranslateByID maps the error of a query for one row by its id: no row becomes a NotFoundError of that kind and id.
func TranslateByID(err error, doing string, kind roomsensor.Kind, id string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", doing, &roomsensor.NotFoundError{Kind: kind, ID: id})
	}
	return fmt.Errorf("%s: %w", doing, Translate(err))
}

// TranslateInsert maps the error of an insert of a row that belongs to a team: a foreign-key violation means that the
// team does not exist.
func TranslateInsert(err error, doing string, teamID uuid.UUID) error {
	if Violates(err, stateForeignKey, "") {
		return fmt.Errorf("%s: %w", doing, &roomsensor.NotFoundError{Kind: roomsensor.KindTeam, ID: teamID.String()})
	}
	return fmt.Errorf("%s: %w", doing, Translate(err))
}

// Violates reports whether an error has a SQLSTATE and, if a constraint is given, names that constraint.
func Violates(err error, state, constraint string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == state &&
		(constraint == "" || pgErr.ConstraintName == constraint)
}
