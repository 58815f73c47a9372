package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/retry"
	"roomsensor/test/dbtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go stopAsOrphan(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stopAsOrphan calls stop when the parent of this process ends: a signal that ends `go tool task` and `go run` does not
// reach this process, and the tests would go on.
func stopAsOrphan(ctx context.Context, stop func()) {
	parent := os.Getppid()
	retry.Every(ctx, time.Second, func(context.Context) {
		if os.Getppid() != parent {
			stop()
		}
	})
}

func run(ctx context.Context, args []string, out io.Writer) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "clean":
		return clean(ctx)
	case "trials":
		r, err := runTests(ctx, true, args[1:], out)
		if err != nil {
			return err
		}
		return r.checkTrials()
	case "conformance":
		r, err := runTests(ctx, false, args[1:], out)
		if err != nil {
			return err
		}
		return r.writePage()
	}
	r, err := runTests(ctx, false, args, out)
	if err != nil || !ofAll(args) {
		return err
	}
	return r.checkPage()
}

// ofAll reports whether the arguments let all tests run.
func ofAll(args []string) bool {
	return !slices.ContainsFunc(args, func(arg string) bool { return arg != raceFlag })
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
func runTests(ctx context.Context, ofTrials bool, args []string, out io.Writer) (r *results, err error) {
	packages, err := listPackages(ctx, ofTrials)
	if err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("creating a directory for programs and results: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Tests run the programs as other accounts too.
		return nil, fmt.Errorf("opening the directory of programs: %w", err)
	}
	env, err := environment(ctx, server.URL, dir)
	if err != nil {
		return nil, err
	}
	header := fmt.Sprintf("%s\n%s\n", info, raceText(args))
	if _, err := io.WriteString(out, header); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	r, failure := goTests(ctx, out, env, invocations(args, packages), dir)
	if r == nil {
		return nil, failure
	}
	if _, err := fmt.Fprintf(out, "\n%s\n%s", r.slowest(), header); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	return r, failure
}

// raceText returns what the tests print about the race detector.
func raceText(args []string) string {
	if slices.Contains(args, raceFlag) {
		return "race detector: on"
	}
	return "race detector: OFF (`-- -race` turns it on for the packages with goroutines; it needs a C compiler)"
}
