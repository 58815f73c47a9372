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
	Setup    string            // pgbench's own commands before it, such as \set
	SQL      string            // with $1, $2 and so on
	Args     []string          // SQL in their place; :name is a variable
	Values   map[string]string // of variables
}

// script is the statement in pgbench's language, in which a parameter is a variable.
func (s *Statement) script() string {
	pairs := make([]string, 0, 2*len(s.Args))
	for i := len(s.Args); i > 0; i-- { // $12 before $1.
		pairs = append(pairs, "$"+strconv.Itoa(i), s.Args[i-1])
	}
	_, sql, _ := strings.Cut(s.SQL, "\n") // The first line is sqlc's name of the query.
	return s.Setup + "\n" + strings.NewReplacer(pairs...).Replace(sql) + ";\n"
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
	if err := os.WriteFile(file, []byte(s.script()), 0o600); err != nil {
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
