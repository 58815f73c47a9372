package baseline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// CopySQL returns a COPY statement of a query to CSV.
func CopySQL(query string) string { return "COPY (" + query + ") TO STDOUT (FORMAT csv, HEADER)" }

// Copy runs a query with psql's COPY to CSV and passes the output to a function.
func Copy(ctx context.Context, database, query string, read func(io.Reader) error) error {
	path, err := program(PSQLProgram)
	if err != nil {
		return err
	}
	//nolint:gosec // The benchmark's query.
	command := exec.CommandContext(ctx, path, "--no-psqlrc", "--quiet", "--command="+CopySQL(query), database)
	command.Env = append(os.Environ(), "PGTZ=UTC")
	out, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	stderr := &limited{}
	command.Stderr = stderr
	if err := command.Start(); err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	if err := errors.Join(read(out), command.Wait()); err != nil {
		return fmt.Errorf("running psql: %w: %s", err, stderr.text)
	}
	return nil
}

// limited keeps the first part of the output of a program.
type limited struct{ text []byte }

const maxText = 4096

// Write keeps as much as there is room for.
func (l *limited) Write(p []byte) (int, error) {
	l.text = append(l.text, p[:min(len(p), maxText-len(l.text))]...)
	return len(p), nil
}
