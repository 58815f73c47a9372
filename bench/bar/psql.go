package bar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// CopySQL is COPY of what a query selects, as CSV.
func CopySQL(query string) string { return "COPY (" + query + ") TO STDOUT (FORMAT csv, HEADER)" }

// Copy runs a query through psql's COPY to CSV and hands what it prints to a function.
func Copy(ctx context.Context, database, query string, read func(io.Reader) error) error {
	path, err := program(PSQLProgram)
	if err != nil {
		return err
	}
	//nolint:gosec // As above.
	command := exec.CommandContext(ctx, path, "--no-psqlrc", "--quiet", "--command="+CopySQL(query), database)
	command.Env = append(os.Environ(), "PGTZ=UTC")
	out, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	said := &limited{}
	command.Stderr = said
	if err := command.Start(); err != nil {
		return fmt.Errorf("running psql: %w", err)
	}
	if err := errors.Join(read(out), command.Wait()); err != nil {
		return fmt.Errorf("running psql: %w: %s", err, said.text)
	}
	return nil
}

// limited keeps the beginning of what a program says.
type limited struct{ text []byte }

const mostSaid = 4096

// Write keeps what there is room for.
func (l *limited) Write(p []byte) (int, error) {
	l.text = append(l.text, p[:min(len(p), mostSaid-len(l.text))]...)
	return len(p), nil
}
