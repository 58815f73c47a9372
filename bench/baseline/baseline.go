// Package baseline runs what roomsensor is compared with: PostgreSQL's own tools on the same server, and pgx.
package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/internal/roomsensor"
)

// PostgreSQL's tools.
const (
	PGBenchProgram = "pgbench"
	PSQLProgram    = "psql"
)

// directories contain PostgreSQL's tools: those of the private copy of Debian's packages, and of packages. The tools in
// PATH come last, because those of Debian are scripts, whose start would count.
var directories = []string{
	"/var/lib/roomsensor/timescaledb/usr/lib/postgresql/*/bin",
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
}

// Find returns the path of one of PostgreSQL's tools.
func Find(name string) (string, error) {
	for _, dir := range directories {
		paths, _ := filepath.Glob(filepath.Join(dir, name)) // Only a bad pattern is an error.
		if len(paths) > 0 {
			return paths[len(paths)-1], nil // The newest version, because Glob sorts.
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("finding %s, which is part of PostgreSQL: %w", name, err)
	}
	return path, nil
}

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

// PGBench returns how often per second the prepared statement ran on so many connections, by the program at a path. A
// failed statement is an error.
func PGBench(ctx context.Context, path string, s *Statement, connections int, d time.Duration) (float64, error) {
	args := []string{"--protocol=prepared", "--file=-"}
	for name, value := range s.Values {
		args = append(args, "--define="+name+"="+value)
	}
	return pgbench(ctx, path, s.Database, s.Script, connections, d, args)
}

// CreatePGBenchTables creates the tables of pgbench's own script in a database, with 100,000 accounts.
func CreatePGBenchTables(ctx context.Context, path, database string) error {
	//nolint:gosec // The path is that of pgbench.
	output, err := exec.CommandContext(ctx, path, "--initialize", "--quiet", database).CombinedOutput()
	if err != nil {
		return fmt.Errorf("creating the tables of pgbench: %w: %s", err, output)
	}
	return nil
}

// SimpleUpdates returns how often per second pgbench's own script ran without the tables that all its clients update
// (pgbench -N): an update, a select and an insert in one transaction.
func SimpleUpdates(
	ctx context.Context, path, database string, connections int, d time.Duration,
) (float64, error) {
	return pgbench(ctx, path, database, "", connections, d, []string{"--skip-some-updates"})
}

func pgbench(
	ctx context.Context, path, database, script string, connections int, d time.Duration, args []string,
) (float64, error) {
	args = append(args, "--no-vacuum", "--client="+strconv.Itoa(connections),
		"--jobs="+strconv.Itoa(min(connections, 2)), duration(d), database)
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // The benchmark's script.
	command.Stdin = strings.NewReader(script)
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

// CopySQL returns a COPY statement of a query to CSV.
func CopySQL(query string) string { return "COPY (" + query + ") TO STDOUT (FORMAT csv, HEADER)" }

// Copy runs a query with COPY to CSV, by psql at a path, and passes the output to a function.
func Copy(ctx context.Context, path, database, query string, read func(io.Reader) error) error {
	//nolint:gosec // The benchmark's query.
	command := exec.CommandContext(ctx, path, "--no-psqlrc", "--quiet", "--command="+CopySQL(query), database)
	command.Env = append(os.Environ(), "PGTZ=UTC")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	if err := errors.Join(read(out), command.Wait()); err != nil {
		return fmt.Errorf("running psql: %w: %s", err, &stderr)
	}
	return nil
}

// CopyFrom stores rows with pgx's CopyFrom. A row that exists already is an error.
func CopyFrom(ctx context.Context, pool *pgxpool.Pool, rows []roomsensor.DeviceMeasurement) error {
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"readings"},
		[]string{"device_id", "bucket_at", "measured_at", "co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			row := &rows[i]
			values := []any{row.DeviceID, row.Bucket(), row.MeasuredAt}
			for _, m := range roomsensor.Metrics {
				if x, ok := row.Values.Get(m); ok {
					values = append(values, x)
				} else {
					values = append(values, nil)
				}
			}
			return values, nil
		}))
	if err != nil {
		return fmt.Errorf("copying readings: %w", err)
	}
	return nil
}
