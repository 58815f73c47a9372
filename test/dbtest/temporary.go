package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/filelock"
	"roomsensor/internal/dev/postgres"
)

// Settings returns the parameters of a PostgreSQL server for tests. A crash of the machine can lose its data.
func Settings() map[string]string {
	return map[string]string{
		"fsync":            "off",
		"full_page_writes": "off",
		"max_connections":  "300",
		// With hundreds of databases, its launcher would start a process every few milliseconds. No test needs it: those
		// of query plans vacuum by themselves.
		"autovacuum": "off",
		"jit":        "off", // A compiled plan is used too rarely to be worth its compilation.
		// The scheduler would connect to template databases, which then cannot be copied.
		"timescaledb.max_background_workers": "0",
		// Neither UTC nor a whole number of hours from it, so that a missing conversion shows.
		"timezone": "America/St_Johns",
	}
}

// DataDir returns the data directory of the server that plain `go test` runs share.
func DataDir() (string, error) { return postgres.Dir("tests", "shared") }

// StartTemporary is postgres.Start in a data directory of its own. The returned function removes the server and the
// directory. First it removes those of earlier processes that were killed before they could do so.
func StartTemporary(ctx context.Context, o postgres.Options) (s *postgres.Server, remove func() error, err error) {
	if o.URL != "" {
		s, err = postgres.Start(ctx, o)
		return s, func() error { return nil }, err
	}
	parent, err := postgres.Dir("tests")
	if err != nil {
		return nil, nil, err
	}
	//nolint:gosec // Another user runs the server and has to pass here.
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	dir, release, err := temporaryDir(ctx, parent, &command.Progress{W: o.Progress})
	if err != nil {
		return nil, nil, err
	}
	remove = func() error {
		defer release()
		return removeTemporary(context.WithoutCancel(ctx), dir)
	}
	o.DataDir = dir
	if s, err = postgres.Start(ctx, o); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return s, remove, nil
}

// temporaryDir makes a directory and locks its file "owner", which shows that its owner lives.
func temporaryDir(ctx context.Context, parent string, p *command.Progress) (dir string, release func(), err error) {
	// With this lock, no process can remove a directory before its owner has locked it.
	unlock, err := filelock.Lock(ctx, filepath.Join(parent, "lock"), func() {})
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	removeAbandoned(ctx, parent, p)
	if dir, err = os.MkdirTemp(parent, "run-"); err != nil {
		return "", nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	if release, err = filelock.Try(filepath.Join(dir, "owner")); err != nil {
		return "", nil, err
	}
	//nolint:gosec // As its parent.
	if err := os.Chmod(dir, 0o755); err != nil {
		release()
		return "", nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	return dir, release, nil
}

// removeAbandoned removes the directories whose owners are gone. One that cannot be removed now, for example because
// Docker does not run, stays until the next call.
func removeAbandoned(ctx context.Context, parent string, p *command.Progress) {
	dirs, _ := filepath.Glob(filepath.Join(parent, "run-*")) // Only a bad pattern is an error.
	for _, dir := range dirs {
		release, err := filelock.Try(filepath.Join(dir, "owner"))
		if err != nil {
			continue // Its owner lives.
		}
		if err = removeTemporary(ctx, dir); err != nil {
			p.Log("cannot remove %s of an earlier run: %v", dir, err)
		}
		release()
	}
}

func removeTemporary(ctx context.Context, dir string) error {
	if err := postgres.Remove(ctx, dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a temporary data directory: %w", err)
	}
	return nil
}
