package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"roomsensor/internal/localdb"
)

const (
	// testTimeout is for one test binary, on a slow machine with the race detector.
	testTimeout = "20m"
	// stopGrace is what interrupted tests get to end by themselves.
	stopGrace = 30 * time.Second
)

// test runs the tests. Where it ran all of them, and they passed, they must prove the contract, as the committed table
// says.
func test(ctx context.Context, args []string, out io.Writer) (int, error) {
	s, code, err := runTests(ctx, args, out)
	if err != nil || code != 0 || len(args) > 0 {
		return code, err
	}
	return 0, s.proof.compare()
}

// conform runs all tests and writes the table of what they prove.
func conform(ctx context.Context, _ []string, out io.Writer) (int, error) {
	s, code, err := runTests(ctx, nil, out)
	if err != nil || code != 0 {
		return code, err
	}
	return 0, s.proof.write()
}

// runTests ends its server whatever comes.
func runTests(ctx context.Context, args []string, out io.Writer) (s *summary, code int, err error) {
	race := raceDetector(ctx)
	if _, err := fmt.Fprintln(out, race); err != nil {
		return nil, 1, fmt.Errorf("writing: %w", err)
	}
	server, remove, err := localdb.StartTemporary(ctx, localdb.Options{
		URL: os.Getenv("TEST_DATABASE_URL"), URLVariable: "TEST_DATABASE_URL",
		Settings: localdb.ForTests(), Progress: out,
	})
	if err != nil {
		return nil, 1, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	info, err := localdb.Describe(ctx, server.URL)
	if err != nil {
		return nil, 1, err
	}
	dir, err := os.MkdirTemp("", "roomsensor-test-")
	if err != nil {
		return nil, 1, fmt.Errorf("making a place for the results: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	events := filepath.Join(dir, "events.json")
	code, err = goTest(ctx, out, server.URL, command(events, race.on, args))
	if err != nil {
		return nil, 1, err
	}
	s, err = summarize(events)
	if err != nil {
		return nil, max(code, 1), err
	}
	if _, err := fmt.Fprintf(out, "\n%s\n%s\n%s", info, race, s); err != nil {
		return nil, 1, fmt.Errorf("writing: %w", err)
	}
	return s, code, s.secretive()
}

// command returns the program and arguments that run the tests.
func command(events string, race bool, args []string) []string {
	argv := []string{
		"go", "tool", "-modfile=tools/go.mod", "gotestsum", "--format=pkgname", "--hide-summary=skipped",
		"--jsonfile=" + events, "--", "-timeout=" + testTimeout,
	}
	if race {
		argv = append(argv, "-race")
	}
	if !namesPackages(args) {
		args = append(args, "./...")
	}
	return append(argv, args...)
}

// namesPackages tells whether the arguments are more than flags.
func namesPackages(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "roomsensor/") || arg == "." {
			return true
		}
	}
	return false
}

// goTest runs the tests on the database and returns their exit code.
func goTest(ctx context.Context, out io.Writer, url string, argv []string) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // The arguments are those of who runs the tests.
	cmd.Env = append(os.Environ(), "TEST_DATABASE_URL="+url)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	// A group of their own: an interrupt is passed on to all of them together, and never only to some.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Those that did not listen to the interrupt, if any.
		return 1, errors.New("the tests were interrupted")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running the tests: %w", err)
	}
	return 0, nil
}

// race tells whether the race detector can be used, and why not.
type race struct {
	on     bool
	reason string
}

func (r race) String() string {
	if r.on {
		return "race detector: on"
	}
	return "race detector: OFF, it needs a C compiler: " + r.reason
}

// raceDetector compiles what the race detector needs a C compiler for.
func raceDetector(ctx context.Context) race {
	out, err := exec.CommandContext(ctx, "go", "build", "-race", "runtime/race", "runtime/cgo").CombinedOutput()
	if err == nil {
		return race{on: true}
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return race{reason: lines[len(lines)-1]}
}
