package pg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATEs with which a server refuses a connection.
const (
	stateInvalidPassword      = "28P01"
	stateInvalidAuthorization = "28000" // Also: no such role, or no entry in pg_hba.conf.
	stateTooManyConnections   = "53300" // Of the server, the database or the role.
	stateNoSuchDatabase       = "3D000"
	stateAdminShutdown        = "57P01"
	stateCrashShutdown        = "57P02"
	stateCannotConnectNow     = "57P03"
)

// Refusal says why a server refused a connection, or failed a statement: a sentence without its subject, with the
// SQLSTATE and, where the cause is known, what to do. It is empty if the server did not answer. It has no text of the
// server, and never a password.
func Refusal(err error) string {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return ""
	}
	what, advice := "answers with an error", ""
	switch pgErr.Code {
	case stateInvalidPassword, stateInvalidAuthorization:
		what = "refuses the role"
		advice = ": check the user and the password in --database-url (DATABASE_URL), and pg_hba.conf"
	case stateTooManyConnections:
		what = "has no free connection"
		advice = ": end sessions that are not of the service, or raise max_connections"
	case stateNoSuchDatabase:
		what, advice = "does not exist", ": check the name in --database-url (DATABASE_URL)"
	case stateAdminShutdown, stateCrashShutdown, stateCannotConnectNow:
		what = "is starting or stopping"
	}
	return fmt.Sprintf("%s (SQLSTATE %s)%s", what, pgErr.Code, advice)
}

// Addresses names the servers of a database URL by host and port, such as "db1:5432 or db2:5432". It is empty for a URL
// that the driver does not accept.
func Addresses(databaseURL string) string {
	configs, err := hostConfigs(databaseURL)
	if err != nil {
		return ""
	}
	names := make([]string, len(configs))
	for i, config := range configs {
		names[i] = hostOf(config)
	}
	return strings.Join(names, " or ")
}
