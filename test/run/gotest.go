package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// testTimeout limits one test binary, on a slow machine with the race detector.
	testTimeout = "20m"
	// stopGrace is the time that interrupted tests have to end.
	stopGrace = 30 * time.Second
	// withC lets Go use a C compiler, which the race detector needs.
	withC = "CGO_ENABLED=1"
)

// command returns the program and arguments that run the tests and write their events to a file.
func command(events string, race bool, args []string) []string {
	packages := 2 * runtime.GOMAXPROCS(0) // Many tests wait for a database, a queue or a timer.
	argv := []string{
		"go", "tool", "-modfile=tools/go.mod", "gotestsum", "--format=pkgname", "--jsonfile=" + events, "--",
		"-timeout=" + testTimeout, "-p=" + strconv.Itoa(packages),
	}
	if race {
		argv = append(argv, "-race")
	}
	if !slices.ContainsFunc(args, isPackage) {
		args = append(args, "./...")
	}
	return append(argv, args...)
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "roomsensor/")
}

// goTest runs the tests on a database, in a process group of their own, so that an interrupt reaches all of them.
func goTest(ctx context.Context, out io.Writer, url string, race bool, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // The arguments are the user's.
	cmd.Env = append(os.Environ(), "TEST_DATABASE_URL="+url)
	if race {
		cmd.Env = append(cmd.Env, withC)
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

// raceDetector returns whether the race detector is available, and what to print about it. It compiles the packages for
// which the race detector needs a C compiler.
func raceDetector(ctx context.Context) (available bool, text string) {
	build := exec.CommandContext(ctx, "go", "build", "-race", "runtime/race", "runtime/cgo")
	build.Env = append(os.Environ(), withC)
	out, err := build.CombinedOutput()
	if err == nil {
		return true, "race detector: on"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return false, "race detector: OFF (it needs a C compiler): " + lines[len(lines)-1]
}
