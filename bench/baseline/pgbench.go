package baseline

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

// Statement is a script that pgbench repeats.
type Statement struct {
	Database string
	Script   string            // SQL with parameters as :name, and pgbench's own commands
	Values   map[string]string // of constant parameters
}

// duration returns the argument for a duration in whole seconds. Less than a second means ten transactions.
func duration(d time.Duration) string {
	if d < time.Second {
		return "--transactions=10"
	}
	return "--time=" + strconv.Itoa(int(d.Seconds()))
}

var transactionsPerSecond = regexp.MustCompile(`tps = ([0-9.]+)`)

// PGBench returns how often per second the prepared statement ran on so many connections. A failed statement is an
// error.
func PGBench(ctx context.Context, s *Statement, connections int, d time.Duration) (float64, error) {
	path, err := program(PGBenchProgram)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "pgbench-")
	if err != nil {
		return 0, fmt.Errorf("creating a directory for pgbench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // A temporary directory.
	file := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(file, []byte(s.Script), 0o600); err != nil {
		return 0, fmt.Errorf("writing the script of pgbench: %w", err)
	}
	args := []string{
		"--no-vacuum", "--protocol=prepared", "--client=" + strconv.Itoa(connections),
		"--jobs=" + strconv.Itoa(min(connections, 2)), "--file=" + file, duration(d),
	}
	for name, value := range s.Values {
		args = append(args, "--define="+name+"="+value)
	}
	command := exec.CommandContext(ctx, path, append(args, s.Database)...) //nolint:gosec // The benchmark's script.
	output, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("running pgbench: %w: %s", err, output)
	}
	match := transactionsPerSecond.FindSubmatch(output)
	if match == nil || !strings.Contains(string(output), "number of failed transactions: 0 ") {
		return 0, fmt.Errorf("pgbench failed: %s", output)
	}
	return strconv.ParseFloat(string(match[1]), 64) //nolint:wrapcheck // The expression matches only numbers.
}
