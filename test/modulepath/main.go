// Command modulepath changes the path of all modules of the repository: in go.mod, in imports, in the settings of the
// linter, and where code and pages name packages. The path is `roomsensor` until the repository has a public address.
//
//	go tool task module-path -- github.com/acme/roomsensor
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() { os.Exit(run(".", os.Args[1:], os.Stderr)) }

// validPath matches a path that `go get` can find: its first element is the name of a host.
var validPath = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w.~-]+)+$`)

// run changes the path of the modules below a directory to the only argument.
func run(root string, args []string, stderr io.Writer) int {
	err := errors.New("name the new path, such as github.com/acme/roomsensor")
	if len(args) == 1 && validPath.MatchString(args[0]) {
		err = rewriteAll(root, args[0])
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "module-path:", err) // There is no better place to report it.
		return 1
	}
	return 0
}

func rewriteAll(root, to string) error {
	files, err := list(root)
	if err != nil {
		return err
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod")) //nolint:gosec // A file of the repository.
	if err != nil {
		return fmt.Errorf("reading the path of the module: %w", err)
	}
	from, _, _ := strings.Cut(strings.TrimPrefix(string(module), "module "), "\n")
	c := newChange(from, to, files)
	for _, name := range files {
		path := filepath.Join(root, name)
		text, err := os.ReadFile(path) //nolint:gosec // As above.
		if err != nil {
			return fmt.Errorf("reading a file: %w", err)
		}
		if changed := c.rewrite(name, string(text)); changed != string(text) {
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil { //nolint:gosec // As above.
				return fmt.Errorf("writing a file: %w", err)
			}
		}
	}
	return nil
}

// settings has the settings of the linter, which names the module.
const settings = ".golangci.yml"

// list returns the files that can name a package, relative to a directory.
func list(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err //nolint:wrapcheck // list wraps it.
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && (slices.Contains([]string{".go", ".md", ".mod"}, filepath.Ext(name)) || name == settings):
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files: %w", err)
	}
	return files, nil
}

// change is a change of the path of the modules.
type change struct {
	to string
	// word matches the old path, pkg matches it before the name of a directory with packages, and imported matches an
	// import of the package at the root. The first group is what precedes it, which must not be a part of another path.
	word, pkg, imported *regexp.Regexp
}

// newChange returns the change of a path. The files tell which directories have packages: labels of Kubernetes, such as
// roomsensor/ops, look like them.
func newChange(from, to string, files []string) change {
	var dirs []string
	for _, name := range files {
		if dir, _, found := strings.Cut(name, "/"); found && strings.HasSuffix(name, ".go") {
			dirs = append(dirs, dir)
		}
	}
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	word := `(^|[^\w./-])` + regexp.QuoteMeta(from)
	return change{
		to: "${1}" + to + "${2}", word: regexp.MustCompile(word + `(\b)`),
		pkg:      regexp.MustCompile(word + `(/(?:` + strings.Join(dirs, "|") + `)\b)`),
		imported: regexp.MustCompile(`(?m)^(\s+"|import ")` + regexp.QuoteMeta(from) + `("$)`),
	}
}

// rewrite returns the text of a file with the new path.
func (c *change) rewrite(name, text string) string {
	switch {
	case strings.HasSuffix(name, ".go"):
		return c.pkg.ReplaceAllString(c.imported.ReplaceAllString(text, c.to), c.to)
	case strings.HasSuffix(name, ".md"):
		return c.pkg.ReplaceAllString(text, c.to)
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		setting, comment, found := strings.Cut(line, "#")
		lines[i] = c.word.ReplaceAllString(setting, c.to)
		if found {
			lines[i] += "#" + comment
		}
	}
	return strings.Join(lines, "")
}
