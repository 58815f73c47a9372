package bar

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Statement is what pgbench runs over and over.
type Statement struct {
	Database string
	Script   string            // in pgbench's language: SQL in which :name is a parameter, and its own commands
	Values   map[string]string // of parameters that stay the same
}

// length is how long pgbench runs. It counts whole seconds; less is a look at whether it works.
func length(d time.Duration) string {
	if d < time.Second {
		return "--transactions=10"
	}
	return "--time=" + strconv.Itoa(int(d.Seconds()))
}

var transactionsPerSecond = regexp.MustCompile(`tps = ([0-9.]+)`)

// PGBench returns how often a second the statement ran, prepared, on so many connections. A failed statement is an
// error.
func PGBench(ctx context.Context, s *Statement, connections int, d time.Duration) (float64, error) {
	path, err := program(PGBenchProgram)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "pgbench-")
	if err != nil {
		return 0, fmt.Errorf("making a place for pgbench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // It is temporary.
	file := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(file, []byte(s.Script), 0o600); err != nil {
		return 0, fmt.Errorf("writing a script of pgbench: %w", err)
	}
	args := []string{
		"--no-vacuum", "--protocol=prepared", "--client=" + strconv.Itoa(connections),
		"--jobs=" + strconv.Itoa(min(connections, 2)), "--file=" + file, length(d),
	}
	for name, value := range s.Values {
		args = append(args, "--define="+name+"="+value)
	}
	command := exec.CommandContext(ctx, path, append(args, s.Database)...) //nolint:gosec // Benchmarks name it.
	said, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("running pgbench: %w: %s", err, said)
	}
	match := transactionsPerSecond.FindSubmatch(said)
	if match == nil || !strings.Contains(string(said), "number of failed transactions: 0 ") {
		return 0, fmt.Errorf("pgbench failed: %s", said)
	}
	return strconv.ParseFloat(string(match[1]), 64) //nolint:wrapcheck // The expression matches numbers.
}
