package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

// run checks the files and directories given, or the whole working directory.
func run(paths []string, out io.Writer) int {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	findings, err := checkAll(paths)
	if err != nil {
		_, _ = fmt.Fprintln(out, "prose:", err) // There is no better place to report it.
		return 1
	}
	for _, f := range findings {
		_, _ = fmt.Fprintln(out, f)
	}
	if len(findings) > 0 {
		_, _ = fmt.Fprintf(out, "%d findings; docs/glossary.md has the terms\n", len(findings))
		return 1
	}
	return 0
}

// skipped are directories that contain generated or foreign files.
var skipped = []string{"bin", "db", "node_modules", "testdata"}

// unchecked are files that must contain the words: the rules themselves.
var unchecked = []string{"test/prose/rules.yml", "test/prose/prose_test.go", "docs/conformance.md"}

func checkAll(paths []string) ([]string, error) {
	rules, err := loadRules()
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, root := range paths {
		//nolint:gosec // The caller names the directories.
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name())) {
					return filepath.SkipDir
				}
				return nil
			}
			found, err := checkFile(path, rules)
			findings = append(findings, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", root, err)
		}
	}
	return findings, nil
}

func checkFile(path string, rules []rule) ([]string, error) {
	if slices.Contains(unchecked, filepath.ToSlash(path)) {
		return nil, nil
	}
	extract := extractors[filepath.Ext(path)]
	if extract == nil {
		return nil, nil
	}
	source, err := os.ReadFile(path) //nolint:gosec // The caller names the files.
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	texts, err := extract(path, source)
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, t := range texts {
		for _, problem := range check(t, rules) {
			findings = append(findings, fmt.Sprintf("%s:%d: %s", path, t.line, problem))
		}
	}
	return findings, nil
}
