package processes

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"roomsensor/test/proctest"
)

var errNotRunning = errors.New("the process is not running")

// program is a process that can be killed, suspended and started again. It reports when the process ends by itself.
type program struct {
	name   string
	launch func(context.Context) (*proctest.Process, error)
	ended  func(name string) // called when the process ended without kill or stop

	mu       sync.Mutex
	process  *proctest.Process
	expected bool // the process was stopped on purpose
	group    sync.WaitGroup
}

// running returns the program of a process that was started already.
func running(
	name string, process *proctest.Process, ended func(string),
	launch func(context.Context) (*proctest.Process, error),
) *program {
	p := &program{name: name, launch: launch, ended: ended, process: process}
	p.group.Go(func() { p.watch(process) })
	return p
}

// start starts the process unless it is running.
func (p *program) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isRunning() {
		return nil
	}
	process, err := p.launch(ctx)
	if err != nil {
		return err
	}
	p.process, p.expected = process, false
	p.group.Go(func() { p.watch(process) })
	return nil
}

// isRunning must be called with the lock held.
func (p *program) isRunning() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.process.Done():
		return false
	default:
		return true
	}
}

func (p *program) watch(process *proctest.Process) {
	<-process.Done()
	p.mu.Lock()
	expected := p.expected
	p.mu.Unlock()
	if !expected {
		p.ended(p.name)
	}
}

// expectEnd returns the process if it is running, and records that it is about to be ended.
func (p *program) expectEnd() *proctest.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isRunning() {
		return nil
	}
	p.expected = true
	return p.process
}

// kill sends SIGKILL and waits until the process has ended. It returns false if the process was not running.
func (p *program) kill() bool {
	process := p.expectEnd()
	if process == nil {
		return false
	}
	process.Kill()
	p.group.Wait()
	return true
}

// stop sends SIGTERM and waits until the process has ended.
func (p *program) stop() error {
	process := p.expectEnd()
	if process == nil {
		return nil
	}
	_, err := process.Stop(stopTimeout)
	p.group.Wait()
	return err
}

// signal sends a signal such as SIGSTOP or SIGCONT.
func (p *program) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isRunning() {
		return errNotRunning
	}
	return p.process.Signal(s)
}
