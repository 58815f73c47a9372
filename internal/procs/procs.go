// Package procs runs the program and its servers as real processes, for tests and trials of what a signal, a crash or
// a long load makes of them: none of that shows inside one process.
package procs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The main packages that are run.
const (
	Roomsensor = "roomsensor/cmd/roomsensor"
	NATSServer = "github.com/nats-io/nats-server/v2"
)

// Build compiles a main package of this module, or of one that it requires, into a directory. Flags are those of `go
// build`, such as -tags.
func Build(ctx context.Context, dir, pkg string, flags ...string) (path string, err error) {
	path = filepath.Join(dir, filepath.Base(strings.TrimSuffix(pkg, "/v2")))
	args := append(append([]string{"build", "-o", path}, flags...), pkg)
	build := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Tests and trials name it.
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", pkg, err, said)
	}
	return path, nil
}

// Command is a process to be.
type Command struct {
	Path string
	Args []string
	Env  []string  // beside that of this process; KEY=value
	Log  io.Writer // takes what it prints; nil drops it
}

// Process is a process that was started.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended, once done is closed
}

// Start starts a process. It outlives the context of its start: end it with Stop or Kill.
func Start(c Command) (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})} //nolint:gosec,noctx // See above.
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = c.Log, c.Log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal; one that has ended hears nothing.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s: %w", s, err)
	}
	return nil
}

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL) // One that has ended is what is wanted.
	<-p.done
}

// Stop tells the process to end and waits for it. It returns how long that took, and an error where the process ended
// with another code than 0 or did not end within the time; it is killed then.
func (p *Process) Stop(within time.Duration) (took time.Duration, err error) {
	began := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return time.Since(began), p.err
	case <-timer.C:
		p.Kill()
		return time.Since(began), fmt.Errorf("the process did not end within %s", within)
	}
}

// PeakMemory is the most memory that the process, which must run, has had at once, in bytes. Only Linux tells.
func (p *Process) PeakMemory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err //nolint:wrapcheck // The kernel writes numbers.
		}
	}
	return 0, errors.New("the kernel does not tell the memory of a process")
}

// clockTick is the unit in which Linux tells of processors, on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

// CPU is how long processors have worked for the process, which must run. Only Linux tells.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the time of a process: %w", err)
	}
	// Behind the name, which may hold anything: the state, ten numbers, and the times in the program and in the kernel.
	_, numbers, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(numbers)
	if len(fields) < 13 {
		return 0, errors.New("the kernel does not tell the time of a process")
	}
	program, err := strconv.ParseInt(fields[11], 10, 64)
	kernel, failed := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(program+kernel) * clockTick, errors.Join(err, failed)
}
