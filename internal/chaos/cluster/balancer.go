package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"roomsensor/internal/procs"
)

// backend is a process behind a balancer.
type backend struct {
	member       *container
	address, ops string // on this machine
	ready        bool
}

// balancer gives connections to processes in turn, as a load balancer in front of a deployment does: to those that say
// that they are ready, and to any when none does.
type balancer struct {
	address  string
	listener net.Listener
	stop     context.CancelFunc
	group    sync.WaitGroup

	mu       sync.Mutex
	backends []*backend
	next     int
	serving  map[string]*backend // by the address of the client
	open     map[net.Conn]struct{}
}

// startBalancer listens on a free address.
func startBalancer(ctx context.Context, backends []*backend) (*balancer, error) {
	address, err := procs.FreeAddress()
	if err != nil {
		return nil, err
	}
	b := &balancer{address: address, backends: backends, serving: map[string]*backend{}, open: map[net.Conn]struct{}{}}
	if b.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
		return nil, err //nolint:wrapcheck // It names the address.
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	for _, back := range backends {
		b.group.Go(func() { b.watch(running, back) })
	}
	b.group.Go(func() { b.accept(running) })
	return b, nil
}

// close cuts all connections.
func (b *balancer) close(context.Context) error {
	b.stop()
	err := b.listener.Close()
	b.mu.Lock()
	for conn := range b.open {
		_ = conn.Close() // Its other end finds out.
	}
	b.mu.Unlock()
	b.group.Wait()
	return err //nolint:wrapcheck // It names the address.
}

// checkEvery is how often a backend is asked whether it is ready.
const checkEvery = 500 * time.Millisecond

func (b *balancer) watch(ctx context.Context, back *backend) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		ready := procs.Answers(ctx, client, procs.ReadyURL(back.ops))
		b.mu.Lock()
		back.ready = ready
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// candidates lists the backends in the order in which they are tried: in turn, and those that are not ready last.
func (b *balancer) candidates() (list []*backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	for _, ready := range []bool{true, false} {
		for i := range b.backends {
			if back := b.backends[(b.next+i)%len(b.backends)]; back.ready == ready {
				list = append(list, back)
			}
		}
	}
	return list
}

func (b *balancer) accept(ctx context.Context) {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.group.Go(func() { b.serve(ctx, conn) })
	}
}

var errNobody = errors.New("no backend takes the connection")

// serve joins a client with a backend. When either end goes, the other is cut: what was left unsaid stays unsaid.
func (b *balancer) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, back, err := b.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	b.note(back, client, server)
	defer b.forget(client, server)
	gone := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // It ends with either connection.
		gone <- struct{}{}
	}
	b.group.Go(func() { pipe(server, client) })
	b.group.Go(func() { pipe(client, server) })
	<-gone
}

// dialTimeout is for a process on this machine.
const dialTimeout = 2 * time.Second

func (b *balancer) dial(ctx context.Context) (net.Conn, *backend, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, back := range b.candidates() {
		if conn, err := dialer.DialContext(ctx, "tcp", back.address); err == nil {
			return conn, back, nil
		}
	}
	return nil, nil, errNobody
}

func (b *balancer) note(back *backend, client, server net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serving[client.RemoteAddr().String()] = back
	b.open[client], b.open[server] = struct{}{}, struct{}{}
}

func (b *balancer) forget(client, server net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.serving, client.RemoteAddr().String())
	delete(b.open, client)
	delete(b.open, server)
}

// who serves a client, by the client's address; nil where nobody does.
func (b *balancer) who(client net.Addr) *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.serving[client.String()]
}
