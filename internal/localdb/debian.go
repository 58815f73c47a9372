package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// debianSuite is the first Debian with TimescaleDB; its packages run on any Linux of the same processor, because
	// the copy brings its own C library.
	debianSuite   = "trixie"
	debianPackage = "postgresql-17-timescaledb"
	// copyTimeout is for some 120 MB of packages over a slow line.
	copyTimeout = 15 * time.Minute
)

// startCopy is the way through a private copy of Debian's packages.
func (s starter) startCopy(ctx context.Context) (*state, error) {
	in, err := s.copyMade(ctx)
	if err != nil {
		in, err = s.makeCopy(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.startCluster(ctx, in, nil)
}

// copyMade returns the private copy of this user, or the one that root made.
func (s starter) copyMade(ctx context.Context) (*installation, error) {
	own, err := copyDir()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{own, filepath.Join(systemBase, "timescaledb")} {
		bins, _ := filepath.Glob(filepath.Join(dir, "usr/lib/postgresql/*/bin")) // Only a bad pattern is an error.
		for _, bin := range bins {
			if in, err := inspect(ctx, bin); err == nil {
				in.how = "a private copy of Debian's packages in " + dir
				return in, nil
			}
		}
	}
	return nil, errors.New("there is no private copy of Debian's packages yet")
}

func copyDir() (string, error) { return inBase("timescaledb") }

// makeCopy makes the private copy, once for all processes that want it.
func (s starter) makeCopy(ctx context.Context) (*installation, error) {
	system, err := osRelease()
	if err != nil {
		return nil, err
	}
	dir, err := copyDir()
	if err != nil {
		return nil, err
	}
	//nolint:gosec // Another user runs these programs; they are not secret.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making a private copy of Debian's packages: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock", s.progress)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if in, err := s.copyMade(ctx); err == nil { // Somebody else was faster.
		return in, nil
	}
	if err := needTools(ctx, s.progress); err != nil {
		return nil, err
	}
	if err := s.unpack(ctx, system, dir); err != nil {
		return nil, err
	}
	return s.copyMade(ctx)
}

// unpack puts the packages into dir, whole or not at all.
func (s starter) unpack(ctx context.Context, system release, dir string) error {
	next := dir + ".new"
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("clearing the place of the private copy: %w", err)
	}
	s.progress.say("making a private copy of Debian's packages in %s (once, about 120 MB to download)", dir)
	if err := s.extract(ctx, system, next); err != nil {
		return err
	}
	if err := s.relocate(ctx, next, dir); err != nil {
		return err
	}
	return os.Rename(next, dir) //nolint:wrapcheck // It names both paths.
}

// extract downloads and unpacks the packages from the first mirror that has them.
func (s starter) extract(ctx context.Context, system release, dir string) error {
	var failures []error
	for _, mirror := range mirrors(system) {
		argv := []string{
			// No script of a package is run in this variant, so nothing here needs root or a container.
			"mmdebstrap", "--mode=chrootless", "--variant=extract", "--format=directory", "--include=" + debianPackage,
			"--keyring=" + keyring(),
		}
		for _, option := range aptOptions(ctx) {
			argv = append(argv, "--aptopt="+option)
		}
		_, err := command{
			step: "making a private copy of Debian's packages", argv: append(argv, debianSuite, dir, mirror),
			dir: "/", env: proxyEnvironment(), limit: copyTimeout,
		}.run(ctx, s.progress)
		if err == nil || ctx.Err() != nil {
			return err
		}
		failures = append(failures, fmt.Errorf("from %s: %w", mirror, err))
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clearing the place of the private copy: %w", err)
		}
	}
	return errors.Join(failures...)
}
