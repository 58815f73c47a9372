package localdb

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// relocate makes the programs below tree use the libraries of the place where the tree is to lie.
func (s starter) relocate(ctx context.Context, tree, final string) error {
	programs, err := filepath.Glob(filepath.Join(tree, "usr/lib/postgresql/*/bin/*"))
	if err != nil || len(programs) == 0 {
		return fmt.Errorf("the packages of Debian hold no PostgreSQL: %w", errors.Join(err, os.ErrNotExist))
	}
	loader, err := interpreter(tree, programs)
	if err != nil {
		return err
	}
	// A library with a path of its own is not looked for along the path of the program, nor is what it needs.
	selfish, err := withRunPath(filepath.Join(filepath.Dir(loader), "*.so*"))
	if err != nil {
		return err
	}
	if len(selfish) > 0 {
		if err := s.patch(ctx, selfish, "--remove-rpath"); err != nil {
			return err
		}
	}
	loader = filepath.Join(final, strings.TrimPrefix(loader, tree))
	return s.patch(ctx, programs, "--set-interpreter", loader, "--force-rpath", "--set-rpath", filepath.Dir(loader))
}

func (s starter) patch(ctx context.Context, files []string, options ...string) error {
	argv := slices.Concat([]string{"patchelf"}, options, files)
	_, err := command{step: "relocating the private copy", argv: argv, dir: "/", limit: time.Minute}.run(ctx, s.progress)
	return err
}

// withRunPath returns the libraries that bring a search path of their own.
func withRunPath(pattern string) ([]string, error) {
	libraries, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("looking for libraries: %w", err)
	}
	var found []string
	for _, library := range libraries {
		if info, err := os.Lstat(library); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := elf.Open(library)
		if err != nil {
			continue // A script of the linker.
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

// interpreter returns the loader of the tree that the programs ask for. It lies with the libraries, in a directory
// that is named after the processor.
func interpreter(tree string, programs []string) (string, error) {
	for _, program := range programs {
		f, err := elf.Open(program)
		if err != nil {
			continue // A script.
		}
		section := f.Section(".interp")
		data, err := section.Data()
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("reading %s: %w", program, err)
		}
		name := filepath.Base(strings.TrimRight(string(data), "\x00"))
		found, err := filepath.Glob(filepath.Join(tree, "usr/lib/*/", name))
		if err == nil && len(found) > 0 {
			return found[0], nil
		}
		return "", fmt.Errorf("the private copy has no %s", name)
	}
	return "", errors.New("the private copy has no programs")
}
