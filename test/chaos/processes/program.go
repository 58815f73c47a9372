package processes

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

var errNotRunning = errors.New("the process ended by itself")

// program is a process that can be killed, suspended and started again. Every call but the first start returns an error
// if the process ended by itself. It is not safe for concurrent use: faults of one target happen one after the other.
type program struct {
	name    string
	launch  func(context.Context) (*proctest.Process, error)
	process *proctest.Process // nil before the first start, and after kill and stop
}

// start starts the process unless it is running.
func (p *program) start(ctx context.Context) (err error) {
	if p.process != nil {
		return p.check()
	}
	p.process, err = p.launch(ctx)
	return err
}

func (p *program) check() error {
	if p.process == nil || p.process.Ended() {
		return fmt.Errorf("%s: %w", p.name, errNotRunning)
	}
	return nil
}

// kill sends SIGKILL and waits until the process has ended.
func (p *program) kill() error {
	err := p.check()
	if err == nil {
		p.process.Kill()
	}
	p.process = nil
	return err
}

// stop sends SIGTERM and waits until the process has ended. It does nothing after kill and stop.
func (p *program) stop() error {
	if p.process == nil {
		return nil
	}
	err := p.check()
	if err == nil {
		_, err = p.process.Stop(harness.StopTimeout)
	}
	p.process = nil
	return err
}

// signal sends a signal such as SIGSTOP or SIGCONT.
func (p *program) signal(s syscall.Signal) error {
	if err := p.check(); err != nil {
		return err
	}
	return p.process.Signal(s)
}
