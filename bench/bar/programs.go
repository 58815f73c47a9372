// Package bar runs what the service is compared with: PostgreSQL's own tools on the same server, and other programs
// that do the same work.
package bar

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// places are where PostgreSQL's tools are, beside the path: those of packages, and of the private copy of them that
// package localdb makes.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/var/lib/roomsensor/timescaledb/usr/lib/postgresql/*/bin",
}

// Missing names the tools of PostgreSQL that are not there; without them the comparisons have no bar.
func Missing() (names []string) {
	for _, name := range []string{PGBenchProgram, PSQLProgram} {
		if _, err := program(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// The tools of PostgreSQL that are bars.
const (
	PGBenchProgram = "pgbench"
	PSQLProgram    = "psql"
)

// program finds one of PostgreSQL's tools, of the newest version where there are several.
func program(name string) (string, error) {
	var found []string
	for _, place := range places {
		paths, _ := filepath.Glob(filepath.Join(place, name)) // Only a bad pattern is an error.
		found = append(found, paths...)
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) > 0 {
		return found[0], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("looking for %s, which comes with PostgreSQL: %w", name, err)
	}
	return path, nil
}

// version is the number in .../postgresql/17/bin/psql.
func version(path string) (n int) {
	_, _ = fmt.Sscanf(filepath.Base(filepath.Dir(filepath.Dir(path))), "%d", &n) // 0 where there is none.
	return n
}
