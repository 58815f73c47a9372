package proctest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Proxy forwards TCP connections to a server. A test can cut it: open connections break, and new ones are closed at
// once. Unlike Toxiproxy it accepts and counts connections while it is cut.
type Proxy struct {
	URL string // of the server, with the address of the proxy

	target   string
	listener net.Listener
	forward  func(to, from net.Conn, fromServer bool)
	attempts atomic.Int64

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
	group sync.WaitGroup
}

// NewProxy starts a proxy to the host of a server's URL.
func NewProxy(ctx context.Context, server string) (*Proxy, error) {
	return NewProxyFunc(ctx, server, func(to, from net.Conn, _ bool) { _, _ = io.Copy(to, from) })
}

// NewProxyFunc starts a proxy that calls forward for each direction of each connection. The connection is closed when
// either call returns.
func NewProxyFunc(
	ctx context.Context, server string, forward func(to, from net.Conn, fromServer bool),
) (*Proxy, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of a server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a proxy: %w", err)
	}
	p := &Proxy{target: u.Host, listener: listener, forward: forward, open: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	p.URL = u.String()
	p.group.Go(p.accept)
	return p, nil
}

// Close stops the proxy and breaks its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Cut()
	p.group.Wait()
	if err != nil {
		return fmt.Errorf("closing a proxy: %w", err)
	}
	return nil
}

// Attempts returns the number of connections that clients opened, including those that were closed at once.
func (p *Proxy) Attempts() int64 { return p.attempts.Load() }

// Cut breaks every open connection, and every new one until Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for conn := range p.open {
		_ = conn.Close()
	}
}

// Restore forwards new connections again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.connect(client)
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.attempts.Add(1)
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.isCut {
		_ = client.Close()
		if err == nil {
			_ = server.Close()
		}
		return
	}
	p.open[client], p.open[server] = true, true
	p.group.Go(func() { p.run(server, client, false) })
	p.group.Go(func() { p.run(client, server, true) })
}

// run forwards until either connection ends, and closes both.
func (p *Proxy) run(to, from net.Conn, fromServer bool) {
	p.forward(to, from, fromServer)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range []net.Conn{to, from} {
		delete(p.open, conn)
		_ = conn.Close()
	}
}
