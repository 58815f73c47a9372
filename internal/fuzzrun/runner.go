package main

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
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is what an interrupted target gets to end by itself.
const stopGrace = 30 * time.Second

// runner runs targets.
type runner struct {
	options
	dir string // for programs and inputs of this run
	url string // of the database

	mu  sync.Mutex
	out io.Writer
}

// prepare compiles the tests of the packages, unless `go test` has to do it with coverage.
func (r *runner) prepare(ctx context.Context, targets []target) error {
	if r.guided {
		return nil
	}
	for _, t := range targets {
		program := r.program(t)
		if _, err := os.Stat(program); err == nil {
			continue
		}
		// As `go tool task test` compiles them, so that most is there.
		args := []string{"test", "-c", "-vet=off", "-o", program}
		if raceDetector(ctx) {
			args = append(args, "-race")
		}
		output, err := exec.CommandContext(ctx, "go", append(args, "./"+t.dir)...).CombinedOutput() //nolint:gosec // Its own.
		if err != nil {
			return fmt.Errorf("compiling the tests of %s: %w\n%s", t.dir, err, output)
		}
	}
	return nil
}

func raceDetector(ctx context.Context) bool {
	return exec.CommandContext(ctx, "go", "build", "-race", "runtime/race", "runtime/cgo").Run() == nil
}

func (r *runner) program(t target) string {
	return filepath.Join(r.dir, strings.ReplaceAll(t.dir, string(filepath.Separator), "_")+".test")
}

// command runs a target in the directory of its package, where it leaves what it finds.
func (r *runner) command(ctx context.Context, t target) *exec.Cmd {
	name, prefix := "go", "-"
	args := []string{"test", "-vet=off"}
	if !r.guided {
		name, prefix = r.program(t), "-test."
		args = []string{"-test.fuzzcachedir=" + filepath.Join(r.dir, "inputs")}
	}
	for _, flag := range []string{"run=^$", "fuzz=^" + t.name + "$", "fuzztime=" + r.time.String(), "parallel=1"} {
		args = append(args, prefix+flag)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "TEST_DATABASE_URL="+r.url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// one runs a target and says how it ended: in one line, or with all that it said.
func (r *runner) one(ctx context.Context, t target) error {
	var said bytes.Buffer
	cmd := r.command(ctx, t)
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return errors.New("the targets were interrupted")
	}
	if err != nil && !outOfTime(said.String()) {
		return fmt.Errorf("%s in %s: %w\n%s", t.name, t.dir, err, said.String())
	}
	_, err = fmt.Fprintf(r.out, "%-24s %-22s %s\n", t.name, t.dir, tally(said.String()))
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// outOfTime reports whether a target failed for nothing but that its time was over while an input ran, which is a fault
// of Go's before 1.27 (go.dev/issue/75804). An input that fails is always written to a file.
func outOfTime(said string) bool {
	return strings.Contains(said, "\n    context deadline exceeded\n") && !strings.Contains(said, "Failing input written")
}

var progress = regexp.MustCompile(`fuzz: elapsed: (\S+), execs: (\d+).*`)

// tally is the last that a target said of its progress.
func tally(said string) string {
	all := progress.FindAllStringSubmatch(said, -1)
	if len(all) == 0 {
		return "no word of progress"
	}
	last := all[len(all)-1]
	return last[2] + " inputs in " + last[1]
}
