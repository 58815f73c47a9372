package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	command := ""
	if len(args) == 1 {
		command = args[0]
	}
	switch command {
	case "clean":
		return clean(ctx)
	case "conformance":
		r, err := runTests(ctx, nil, out)
		if err != nil {
			return err
		}
		return r.writePage()
	}
	r, err := runTests(ctx, args, out)
	if err != nil || len(args) > 0 {
		return err
	}
	return r.checkPage()
}

// clean stops and removes the server that plain `go test` runs share.
func clean(ctx context.Context) error {
	dir, err := dbtest.DataDir()
	if err != nil {
		return err
	}
	return postgres.Remove(ctx, dir)
}

// runTests runs `go test` on a temporary server, prints a summary and returns the results. A test that fails is an
// error.
func runTests(ctx context.Context, args []string, out io.Writer) (r *results, err error) {
	race, raceText := raceDetector(ctx)
	server, remove, err := dbtest.StartTemporary(ctx, postgres.Options{
		URL: os.Getenv("TEST_DATABASE_URL"), URLVariable: "TEST_DATABASE_URL",
		Settings: dbtest.Settings(), Progress: out,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the database: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	info, err := postgres.Describe(ctx, server.URL)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "roomsensor-test-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the results: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := fmt.Fprintf(out, "%s\n%s\n", info, raceText); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	events := filepath.Join(dir, "events.json")
	failure := goTest(ctx, out, server.URL, race, command(events, race, args))
	r, err = readResults(events)
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	if _, err := fmt.Fprintf(out, "\n%s\n%s\n", info, raceText); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	return r, failure
}
