package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StartTemporary is Start in a data directory of its own, which the returned function removes together with the
// server. What earlier processes could not remove, because they were killed, it removes first.
func StartTemporary(ctx context.Context, o Options) (s *Server, remove func() error, err error) {
	if o.URL != "" {
		s, err = Start(ctx, o)
		return s, func() error { return nil }, err
	}
	parent, err := inBase("tests")
	if err != nil {
		return nil, nil, err
	}
	//nolint:gosec // Another user runs the server and has to pass here.
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	dir, release, err := temporaryDir(ctx, parent, &progress{w: o.Progress})
	if err != nil {
		return nil, nil, err
	}
	remove = func() error {
		defer release()
		return removeTemporary(context.WithoutCancel(ctx), dir)
	}
	o.DataDir = dir
	if s, err = Start(ctx, o); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return s, remove, nil
}

// temporaryDir makes a directory and holds the lock that says that its owner lives.
func temporaryDir(ctx context.Context, parent string, p *progress) (dir string, release func(), err error) {
	// Nobody may take a directory for abandoned before its owner has locked it.
	unlock, err := lock(ctx, filepath.Join(parent, "lock"), p)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	sweep(ctx, parent, p)
	if dir, err = os.MkdirTemp(parent, "run-"); err != nil {
		return "", nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	if release, err = tryLock(filepath.Join(dir, "owner")); err != nil {
		return "", nil, err
	}
	//nolint:gosec // As its parent.
	if err := os.Chmod(dir, 0o755); err != nil {
		release()
		return "", nil, fmt.Errorf("making a temporary data directory: %w", err)
	}
	return dir, release, nil
}

// sweep removes the directories whose owners are gone. One that cannot be removed now, because Docker is away for
// example, stays for the next time.
func sweep(ctx context.Context, parent string, p *progress) {
	dirs, _ := filepath.Glob(filepath.Join(parent, "run-*")) // Only a bad pattern is an error.
	for _, dir := range dirs {
		release, err := tryLock(filepath.Join(dir, "owner"))
		if err != nil {
			continue // Its owner lives.
		}
		if err = removeTemporary(ctx, dir); err != nil {
			p.say("%s of an earlier run stays: %v", dir, err)
		}
		release()
	}
}

func removeTemporary(ctx context.Context, dir string) error {
	if err := Remove(ctx, dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a temporary data directory: %w", err)
	}
	return nil
}
