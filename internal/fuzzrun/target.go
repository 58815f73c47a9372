package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// target is a fuzz test.
type target struct {
	dir  string // of its package, from the root of the module
	name string
}

// declaration is what every target begins with.
var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// find lists the targets below a directory, by package and in the order of their files. nil is all names.
func find(root string, only *regexp.Regexp) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path) //nolint:gosec // A file of the module.
		if err != nil {
			return fmt.Errorf("reading a test: %w", err)
		}
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			if name := string(match[1]); only == nil || only.MatchString(name) {
				targets = append(targets, target{filepath.Dir(path), name})
			}
		}
		return nil
	})
	if err == nil && len(targets) == 0 {
		return nil, errors.New("there is no such target")
	}
	if err != nil {
		return nil, fmt.Errorf("looking for targets: %w", err)
	}
	return targets, nil
}
