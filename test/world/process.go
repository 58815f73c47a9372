package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/retry"
	"roomsensor/internal/worker"
)

// process is a receiver, a worker, or a publisher that uses the stream directly. What a dead one sends has no effect.
type process struct {
	w       *World
	name    string
	start   func() *process // starts another one like it
	ctx     context.Context //nolint:containedctx // Its end is SIGTERM.
	cancel  context.CancelFunc
	killed  chan struct{} // closed by kill -9
	sent    time.Time     // when what it sent to NATS last arrives
	paused  time.Time     // until then, it neither sends nor receives
	handler *receiver.Receiver
	queue   *queue.Queue
	futures []*future // of what it published
}

var errKilled = errors.New("the process was killed")

func (w *World) newProcess(kind string, start func() *process) *process {
	w.started++
	p := &process{w: w, name: fmt.Sprint(kind, w.started), start: start, killed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.queue = p.newQueue(w)
	w.processes = append(w.processes, p)
	w.record("start %s", p.name)
	return p
}

func (p *process) isDead() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// publishing remembers a message that the process waits for.
func (p *process) publishing(f *future) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.futures = append(p.futures, f)
}

// die ends a process. Its goroutines end by themselves.
func (p *process) die() {
	close(p.killed)
	p.cancel()
	for _, f := range p.futures {
		select {
		case f.failed <- errKilled:
		default: // It has failed already.
		}
	}
}

// submit sends something to the stream, in order.
func (p *process) submit(label string, do func()) {
	p.w.submit(&step{label: p.name + " " + label, from: p, order: true, do: func() {
		if !p.isDead() || p.w.happens(50) { // What is on its way may arrive.
			do()
		}
	}})
}

// reply lets a process receive something, unless it is dead. Only the driver calls it.
func (p *process) reply(receive func()) {
	switch {
	case p.isDead():
	case time.Now().Before(p.paused):
		p.w.after(time.Until(p.paused)+p.w.latency(), "to "+p.name, func() { p.reply(receive) })
	default:
		receive()
	}
}

// origin names the function that the goroutine of the caller runs. Several goroutines of a process may send the same at
// the same time.
func origin() string {
	var callers [64]uintptr
	n := runtime.Callers(2, callers[:])
	const outer = 3 // after runtime.goexit and sync.WaitGroup.Go
	name := runtime.FuncForPC(callers[max(0, n-outer)] - 1).Name()
	return " " + name[strings.LastIndexByte(name, '/')+1:]
}

// call runs do as a request of the process to NATS, and returns its error, or that of ctx.
func (p *process) call(ctx context.Context, label string, do func() error) error {
	done := make(chan error, 1)
	p.submit(label+origin(), func() {
		err := do()
		p.reply(func() { done <- err })
	})
	return p.await(ctx, done)
}

func (p *process) await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// What the process does at the same instant comes first: the third extension of a batch, 45 s after its begin, is
		// when a read or a transaction is out of time.
		_ = retry.Sleep(context.WithoutCancel(ctx), time.Microsecond)
		return ctx.Err()
	case <-p.killed:
		return errKilled
	}
}

// startWorker starts a worker.
func (w *World) startWorker() *process {
	p := w.newProcess("worker", w.startWorker)
	rng := newRNG(w.rng.Uint64(), 0)
	run := worker.New(worker.Config{
		Queue: p.queue, Store: tablesOf{p: p, t: w.tables}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
		Random: rng.Int64N, StopTimeout: w.between(time.Second, worker.DefaultStopTimeout),
	})
	go run.Run(p.ctx)
	return p
}

// startReceiver starts a receiver. The check of the stream is that of the process that it would be in.
func (w *World) startReceiver() *process {
	p := w.newProcess("receiver", w.startReceiver)
	p.handler = receiver.New(receiver.Config{
		Queue: p.queue, Keys: tablesOf{p: p, t: w.tables}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
		RequestsPerSecond: 1000,
	})
	go retry.Every(p.ctx, 2*time.Second, func(ctx context.Context) { _ = p.queue.Check(ctx) })
	go func() { _ = p.handler.Run(p.ctx, silence{p.ctx}) }() // Its error is that of the listener, which has none.
	return p
}

// startPublisher starts a trusted publisher. Nothing kills it.
func (w *World) startPublisher() *process { return w.newProcess("publisher", w.startPublisher) }

// silence is a listener to which nobody connects: senders call the handler.
type silence struct{ ctx context.Context } //nolint:containedctx // Of the process.

func (s silence) Accept() (net.Conn, error) {
	<-s.ctx.Done()
	return nil, net.ErrClosed
}
func (silence) Close() error   { return nil }
func (silence) Addr() net.Addr { return &net.TCPAddr{} }

// anyProcess returns a receiver or worker that a fault hits.
func (w *World) anyProcess() *process { return w.processes[1+w.rng.IntN(len(w.processes)-1)] }

// kill ends a process at once, as kill -9 does, and starts another one soon.
func (w *World) kill(p *process) {
	if p.isDead() {
		return
	}
	w.record("kill %s", p.name)
	p.die()
	w.replace(p)
}

// stop ends a process as SIGTERM does.
func (w *World) stop(p *process) {
	w.record("stop %s", p.name)
	p.cancel()
	w.after(w.between(0, 30*time.Second), "kill stopped", func() { w.kill(p) })
}

// replace starts another process in the place of a dead one.
func (w *World) replace(p *process) {
	w.after(w.between(0, 10*time.Second), "replace", func() {
		w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
		p.start()
	})
}
