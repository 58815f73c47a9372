package proctest

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
)

// The main packages to build.
const (
	Roomsensor = "roomsensor/cmd/roomsensor"
	NATSServer = "github.com/nats-io/nats-server/v2"
)

// ProgramsVariable names the environment variable with the directory of programs that are built already: `go tool task
// test` builds those of all packages once.
const ProgramsVariable = "TEST_PROGRAMS"

// Build compiles a main package of this module, or of a module that it requires, into a directory, unless the directory
// of ProgramsVariable has it.
func Build(ctx context.Context, dir, pkg string) (path string, err error) {
	name := filepath.Base(strings.TrimSuffix(pkg, "/v2"))
	if built := os.Getenv(ProgramsVariable); built != "" {
		path = filepath.Join(built, name)
		if _, err := os.Stat(path); err == nil { //nolint:gosec // The test command sets the directory.
			return path, nil
		}
	}
	path = filepath.Join(dir, name)
	args := []string{"build", "-ldflags=-s -w", "-o", path, pkg}
	build := exec.CommandContext(ctx, "go", args...)  //nolint:gosec // The caller is a test or a trial.
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // As the tests, whose build cache it shares.
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", pkg, err, output)
	}
	return path, nil
}

// Command describes a process to start.
type Command struct {
	Path string
	Args []string
	Env  []string  // added to the environment of this process, KEY=value
	Log  io.Writer // receives stdout and stderr; nil discards them
}

// Process is a started process.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // result of Wait, set before done is closed
}

// Start starts a process. The caller ends it with Stop or Kill.
func Start(c Command) (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})} //nolint:gosec,noctx // See Start.
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

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s: %w", s, err)
	}
	return nil
}

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL) // If it fails, the process has ended already.
	<-p.done
}

// Stop sends SIGTERM and waits until the process has ended. It returns how long that took, and an error if the exit
// code is not 0. A process that does not end within the time is killed, which is an error too.
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

// Memory returns the resident memory of the process and its peak since the start or the last ResetPeakMemory, in bytes.
// The process must be running. It works on Linux only.
func (p *Process) Memory() (resident, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			resident = kib << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	if resident == 0 || peak == 0 {
		return 0, 0, errors.New("reading the memory of a process: the kernel does not report it")
	}
	return resident, peak, nil
}

// ResetPeakMemory sets the peak memory of the process to its resident memory.
func (p *Process) ResetPeakMemory() error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the peak memory of a process: %w", err)
	}
	return nil
}

// CPU returns the processor time that the process has used. The process must be running. It works on Linux only.
func (p *Process) CPU() (time.Duration, error) { return processorTime(p.PID(), false) }
