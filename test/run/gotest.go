package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

const (
	// testTimeout limits one test binary, on a slow machine with the race detector.
	testTimeout = "20m"
	// stopGrace is the time that interrupted tests have to end.
	stopGrace = 30 * time.Second
	// raceFlag is the flag of `go test` that turns on the race detector.
	raceFlag = "-race"
)

// module is the import path of the packages of this module, with a slash.
var module = strings.TrimSuffix(proctest.Roomsensor, "cmd/roomsensor")

// trials are the packages, and the parents of packages, that run the whole service for long: under faults or load, from
// a backup, under Prometheus, and for the samples of the documentation; and the model of ingest. `run trials` runs
// them, and no others.
func trials() []string {
	return []string{"bench", "test/backup", "test/chaos", "test/damage", "test/model", "test/monitoring", "test/samples"}
}

// concurrent are the packages, and the parents of packages, whose code under test starts goroutines or is called by
// several. If all packages run, the race detector is on for these only: elsewhere it finds nothing.
func concurrent() []string {
	return []string{
		"internal/api", "internal/dashboard", "internal/export", "internal/fairshare", "internal/httpedge",
		"internal/process", "internal/queue", "internal/receiver", "internal/service", "internal/simulate/send",
		"internal/store/fleet", "internal/store/pg", "internal/store/readings", "internal/teamcache", "internal/tracing",
		"internal/worker", "test/client/export",
	}
}

// longest are the packages that take longest. They run first, so that others fill the time in which they wait.
func longest() []string {
	return []string{
		"test/monitoring", "test/backup", "test/e2e", "cmd/roomsensor", "internal/api", "internal/service",
		"internal/dashboard",
	}
}

// within reports whether a package is one of those in a list, or below it.
func within(pkg string, list []string) bool { return position(pkg, list) < len(list) }

// position returns the index of the first entry of a list that a package is, or is below. Without one, it returns the
// length of the list.
func position(pkg string, list []string) int {
	pkg = strings.TrimPrefix(pkg, module)
	n := slices.IndexFunc(list, func(of string) bool { return pkg == of || strings.HasPrefix(pkg, of+"/") })
	if n < 0 {
		return len(list)
	}
	return n
}

// invocation are the arguments of one `go test`.
type invocation struct {
	race bool
	args []string
}

// invocations returns the calls of `go test` for the arguments of the user. Those that name no package are for all, of
// which the race detector gets a call of its own with the packages that it is for.
func invocations(args, packages []string) []invocation {
	race := slices.Contains(args, raceFlag)
	if slices.ContainsFunc(args, isPackage) {
		return []invocation{{race, args}}
	}
	if !race {
		return []invocation{{false, append(packages, args...)}}
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == raceFlag })
	var plain, raced []string
	for _, pkg := range packages {
		if within(pkg, concurrent()) {
			raced = append(raced, pkg)
		} else {
			plain = append(plain, pkg)
		}
	}
	return []invocation{
		{false, append(plain, args...)},
		{true, append(append(raced, args...), raceFlag)},
	}
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, module)
}

// listPackages returns the packages with tests, also of the modules of the client: those of the trials, or all others.
// The longest are first.
func listPackages(ctx context.Context, ofTrials bool) ([]string, error) {
	const withTests = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
	list := exec.CommandContext(ctx, "go", "list", "-f", withTests, "./...", "roomsensor/client/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(pkg string) bool {
		return within(pkg, trials()) != ofTrials
	})
	slices.SortStableFunc(packages, func(a, b string) int {
		return cmp.Compare(position(a, longest()), position(b, longest()))
	})
	return packages, nil
}

// command returns the program and arguments that run tests and write their events to a file. The linters vet the code.
func command(events string, args []string) []string {
	packages := 2 * runtime.GOMAXPROCS(0) // Many tests wait for a database, a queue or a timer.
	return append([]string{
		"go", "tool", "-modfile=tools/go.mod", "gotestsum", "--format=pkgname", "--jsonfile=" + events, "--",
		"-vet=off", "-timeout=" + testTimeout, "-p=" + strconv.Itoa(packages),
	}, args...)
}

// goTest runs the tests in a process group of their own, so that an interrupt reaches all of them.
func goTest(ctx context.Context, out io.Writer, env []string, i invocation, events string) error {
	argv := command(events, i.args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // The arguments are the user's.
	cmd.Env = append(os.Environ(), env...)
	if i.race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1") // The race detector needs a C compiler.
	}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Those that ignored the interrupt.
	}
	if err != nil {
		return fmt.Errorf("running the tests: %w", err)
	}
	return nil
}

// goTests runs all invocations, also after one that failed, and returns their results.
func goTests(ctx context.Context, out io.Writer, env []string, list []invocation, dir string) (*results, error) {
	r := newResults()
	var failures []error
	for n, i := range list {
		events := filepath.Join(dir, fmt.Sprintf("events-%d.json", n))
		failures = append(failures, goTest(ctx, out, env, i, events))
		if ctx.Err() != nil {
			break
		}
		if err := r.read(events); err != nil {
			return nil, errors.Join(append(failures, err)...)
		}
	}
	return r, errors.Join(failures...)
}

// environment returns the variables with which tests find the database and the programs, which are built only once.
func environment(ctx context.Context, databaseURL, dir string) ([]string, error) {
	env := []string{"TEST_DATABASE_URL=" + databaseURL, proctest.ProgramsVariable + "=" + dir}
	if os.Getenv("TEST_DATABASE_URL") == "" {
		env = append(env, dbtest.TemporaryVariable+"=1")
	}
	var group errgroup.Group
	for _, pkg := range []string{proctest.Roomsensor, proctest.NATSServer} {
		group.Go(func() error {
			_, err := proctest.Build(ctx, dir, pkg)
			return err
		})
	}
	return env, group.Wait() //nolint:wrapcheck // Wrapped by Build.
}
