package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/roomsensor"
)

// retryAfter is what a client is told when the database sheds load or is away.
const retryAfter = 2 * time.Second

// The SQLSTATEs that need more than their class to be told apart.
const (
	stateLockNotAvailable  = "55P03"
	stateQueryCanceled     = "57014"
	stateTooMuchDecompress = "53400"
	stateReadOnly          = "25006"
	stateExclusion         = "23P01"
	stateForeignKey        = "23503"
	stateUnique            = "23505"
)

// passingClasses are the classes of SQLSTATE that say nothing about the request:
// no connection, serialisation, resources, the operator's intervention.
var passingClasses = []string{"08", "40", "53", "57", "58"}

// translate maps an error of the driver to the domain, once and here alone. It
// keeps the cause in the chain, for the log.
func translate(err error) error {
	var refused *pgconn.PgError
	var known *roomsensor.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &known):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return roomsensor.ErrNotFound
	case errors.As(err, &refused):
		if isPassing(refused.Code) {
			return overloaded(err)
		}
		return err
	case isConnectionError(err):
		return overloaded(err)
	}
	return err
}

func isPassing(state string) bool {
	if state == stateLockNotAvailable || state == stateReadOnly {
		return true // The latter: a primary that was just demoted.
	}
	for _, class := range passingClasses {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return false
}

// isConnectionError reports whether a question got no answer at all.
func isConnectionError(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

func overloaded(cause error) error {
	answer := roomsensor.CodeOverloaded.New()
	answer.RetryAfter = retryAfter
	return fmt.Errorf("%w: %w", answer, cause)
}

// translateWrite tells a write that failed for good, or for its size, from one
// to try again (reliability of the worker).
func translateWrite(err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case refused.Code == stateUnique:
			return overloaded(err) // Others were faster each time, see takenTries.
		case refused.Code == stateTooMuchDecompress, refused.Code == stateQueryCanceled:
			return fmt.Errorf("%w: %w", roomsensor.ErrTooMuch, err)
		case strings.HasPrefix(refused.Code, "22"), strings.HasPrefix(refused.Code, "23"):
			return fmt.Errorf("%w: %w", roomsensor.ErrNotStorable, err)
		}
	}
	return translate(err)
}

// violates reports whether an error is of a SQLSTATE, and, where a constraint
// is named, of that constraint.
func violates(err error, state, constraint string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == state &&
		(constraint == "" || refused.ConstraintName == constraint)
}
