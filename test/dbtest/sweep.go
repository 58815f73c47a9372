package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sweep drops the databases of processes that have ended, and templates that no process uses.
func (s *server) sweep(ctx context.Context) error {
	rows, _ := s.session.Query(ctx, "SELECT datname FROM pg_database WHERE datname ~ $1",
		"^("+testPrefix+"|"+templatePrefix+")[0-9a-f]{8}(_|$)") // CollectRows returns the error.
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("listing the databases of killed tests: %w", err)
	}
	for _, name := range names {
		if err := s.sweepOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// sweepOne drops a database if the lock that its name denotes is free.
func (s *server) sweepOne(ctx context.Context, name string) error {
	class, rest := ownerClass, strings.TrimPrefix(name, testPrefix)
	if of, ok := strings.CutPrefix(name, templatePrefix); ok {
		class, rest = usersClass, of
	}
	key, err := strconv.ParseInt(rest[:8], 16, 32)
	if err != nil || name == s.templateName || class == ownerClass && int32(key) == s.key {
		return nil //nolint:nilerr // This process uses it, or dbtest did not create it.
	}
	var free bool
	err = s.session.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", class, int32(key)).Scan(&free)
	if err != nil {
		return fmt.Errorf("checking whether %s is in use: %w", name, err)
	}
	if !free {
		return nil
	}
	err = s.dropIfExists(ctx, name)
	_, unlockErr := s.session.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", class, int32(key))
	return errors.Join(err, unlockErr)
}
