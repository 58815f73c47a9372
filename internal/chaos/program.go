package chaos

import (
	"context"
	"sync"
	"syscall"

	"roomsensor/internal/procs"
)

// program is a process that is killed, halted and started again.
type program struct {
	name   string
	launch func(context.Context) (*procs.Process, error)
	// died is called when the process ends without being told to.
	died func(name string)

	mu      sync.Mutex
	process *procs.Process
	told    bool           // to end
	group   sync.WaitGroup // of those who wait for an end
}

// start starts the process, unless it runs.
func (p *program) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		return nil
	}
	process, err := p.launch(ctx)
	if err != nil {
		return err
	}
	p.process, p.told = process, false
	p.group.Go(func() { p.watch(process) })
	return nil
}

// runs is called with the lock held.
func (p *program) runs() bool {
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

func (p *program) watch(process *procs.Process) {
	<-process.Done()
	p.mu.Lock()
	told := p.told
	p.mu.Unlock()
	if !told {
		p.died(p.name)
	}
}

// tell returns the process, if it runs, and remembers that it is to end.
func (p *program) tell() *procs.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.runs() {
		return nil
	}
	p.told = true
	return p.process
}

// kill is kill -9. It returns once the process is gone, and false where there was none.
func (p *program) kill() bool {
	process := p.tell()
	if process == nil {
		return false
	}
	process.Kill()
	p.group.Wait()
	return true
}

// stop tells the process to end and waits for it.
func (p *program) stop() error {
	process := p.tell()
	if process == nil {
		return nil
	}
	_, err := process.Stop(stopPatience)
	p.group.Wait()
	return err
}

// signal sends SIGSTOP, which makes it hold all that it has and do nothing, or SIGCONT.
func (p *program) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.runs() {
		return errNotRunning
	}
	return p.process.Signal(s)
}
