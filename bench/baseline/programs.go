package baseline

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// directories contain PostgreSQL's tools if they are not in PATH: those of packages, and of the private copy of
// Debian's packages.
var directories = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/var/lib/roomsensor/timescaledb/usr/lib/postgresql/*/bin",
}

// Missing returns the names of PostgreSQL's tools that are not installed. Rows that need them have no baseline.
func Missing() (names []string) {
	for _, name := range []string{PGBenchProgram, PSQLProgram} {
		if _, err := program(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// PostgreSQL's tools.
const (
	PGBenchProgram = "pgbench"
	PSQLProgram    = "psql"
)

// program returns the path of one of PostgreSQL's tools, of the newest installed version.
func program(name string) (string, error) {
	var found []string
	for _, dir := range directories {
		paths, _ := filepath.Glob(filepath.Join(dir, name)) // Only a bad pattern is an error.
		found = append(found, paths...)
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) > 0 {
		return found[0], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("finding %s, which is part of PostgreSQL: %w", name, err)
	}
	return path, nil
}

// version returns the number in .../postgresql/17/bin/psql, or 0.
func version(path string) (n int) {
	_, _ = fmt.Sscanf(filepath.Base(filepath.Dir(filepath.Dir(path))), "%d", &n) // 0 if there is none.
	return n
}
