// Package debian makes a private copy of a package of Debian, such as that of TimescaleDB, and of what it depends on,
// in a directory. Nothing of it is installed: its programs run from the directory, with the C library of the copy.
//
//	copy.go  download, unpack, set the loader and library path of the programs
//	apt.go   the tools that it needs, apt's configuration, mirrors
package debian

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/dev/command"
)

const (
	// suite is the first Debian with TimescaleDB. Its packages run on any Linux of the same processor, because the
	// copy brings its own C library.
	suite = "trixie"
	// copyTimeout is the limit for about 120 MB of packages over a slow connection.
	copyTimeout = 15 * time.Minute
)

// Package is a package of Debian whose programs are wanted.
type Package struct {
	name     string
	programs string // pattern of their paths in a copy
	size     string // of the download
}

// The packages that can be copied. TimescaleDB depends on PostgreSQL.
var (
	TimescaleDB = Package{"postgresql-17-timescaledb", "usr/lib/postgresql/*/bin/*", "120 MB"}
	PgBouncer   = Package{"pgbouncer", "usr/sbin/pgbouncer", "40 MB"}
	PgBackRest  = Package{"pgbackrest", "usr/bin/pgbackrest", "60 MB"}
	Mosquitto   = Package{"mosquitto,mosquitto-clients", "usr/*bin/mosquitto*", "20 MB"}
)

// Programs returns the paths of the programs in a copy.
func (pkg Package) Programs(dir string) []string {
	return find(dir, pkg.programs)
}

// find returns the paths below a directory that match a pattern. The path of the directory is not part of the pattern.
func find(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // Only a bad pattern is an error.
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// Copy makes the copy in dir and replaces an incomplete one. It returns an error on a system that is not Debian or
// Ubuntu, and if tools are missing that only root can install, or whose installation confirm refuses. The caller makes
// sure that only one process calls it.
func (pkg Package) Copy(ctx context.Context, dir string, p *command.Progress, confirm Confirm) error {
	system, err := osRelease()
	if err != nil {
		return err
	}
	if err := installTools(ctx, p, confirm); err != nil {
		return err
	}
	next := dir + ".new"
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("clearing the directory of the private copy: %w", err)
	}
	p.Log("making a private copy of Debian's packages in %s (once, about %s to download)", dir, pkg.size)
	if err := pkg.extract(ctx, system, next, p); err != nil {
		return err
	}
	if err := pkg.relocate(ctx, next, dir, p); err != nil {
		return err
	}
	return os.Rename(next, dir) //nolint:wrapcheck // It names both paths.
}

// extract downloads and unpacks the packages from the first mirror that has them.
func (pkg Package) extract(ctx context.Context, system release, dir string, p *command.Progress) error {
	var failures []error
	for _, mirror := range mirrors(ctx, system) {
		argv := []string{
			// This variant runs no script of a package, so it needs neither root nor a container.
			"mmdebstrap", "--mode=chrootless", "--variant=extract", "--format=directory", "--include=" + pkg.name,
			"--keyring=" + keyring(),
		}
		for _, option := range aptOptions(ctx) {
			argv = append(argv, "--aptopt="+option)
		}
		_, err := command.Command{
			Step: "making a private copy of Debian's packages", Argv: append(argv, suite, dir, mirror),
			Dir: "/", Env: proxyEnvironment(), Limit: copyTimeout,
		}.Run(ctx, p)
		if err == nil || ctx.Err() != nil {
			return err
		}
		failures = append(failures, fmt.Errorf("from %s: %w", mirror, err))
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clearing the directory of the private copy: %w", err)
		}
	}
	return errors.Join(failures...)
}

// relocate makes the programs below tree use the loader and the libraries of the directory that tree is moved to.
func (pkg Package) relocate(ctx context.Context, tree, final string, p *command.Progress) error {
	programs := pkg.Programs(tree)
	if len(programs) == 0 {
		return fmt.Errorf("the package %s of Debian contains none of its programs: %w", pkg.name, os.ErrNotExist)
	}
	// The loader is beside the libraries, in a directory named after the processor.
	loaders := find(tree, "usr/lib/*/ld*.so.[0-9]")
	if len(loaders) == 0 {
		return errors.New("the private copy has no loader")
	}
	loader := loaders[0]
	// The loader ignores the path of the program for a library that has its own path, and for what that one needs.
	ownPath, err := withRunPath(find(filepath.Dir(loader), "*.so*"))
	if err != nil {
		return err
	}
	if len(ownPath) > 0 {
		if err := patch(ctx, p, ownPath, "--remove-rpath"); err != nil {
			return err
		}
	}
	loader = filepath.Join(final, strings.TrimPrefix(loader, tree))
	return patch(ctx, p, programs, "--set-interpreter", loader, "--force-rpath", "--set-rpath", filepath.Dir(loader))
}

func patch(ctx context.Context, p *command.Progress, files []string, options ...string) error {
	argv := slices.Concat([]string{"patchelf"}, options, files)
	_, err := command.Command{Step: "relocating the private copy", Argv: argv, Dir: "/", Limit: time.Minute}.Run(ctx, p)
	return err
}

// withRunPath returns the libraries that have a search path of their own.
func withRunPath(libraries []string) (found []string, err error) {
	for _, library := range libraries {
		if info, err := os.Lstat(library); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := elf.Open(library)
		if err != nil {
			continue // A linker script.
		}
		path, err := f.DynString(elf.DT_RUNPATH)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("reading %s: %w", library, err)
		}
		if len(path) > 0 {
			found = append(found, library)
		}
	}
	return found, nil
}
