package procs

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Line is the way to a server, which a test can cut: connections break, and
// new ones are closed at once.
type Line struct {
	URL string // of the server, by way of the line

	target   string
	listener net.Listener
	attempts atomic.Int64

	mu      sync.Mutex
	isCut   bool
	ends    map[net.Conn]bool
	workers sync.WaitGroup
}

// NewLine opens a way to the server that a URL names.
func NewLine(ctx context.Context, server string) (*Line, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of a server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a server: %w", err)
	}
	l := &Line{target: u.Host, listener: listener, ends: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	l.URL = u.String()
	l.workers.Go(l.accept)
	return l, nil
}

// Close cuts the line for good.
func (l *Line) Close() error {
	err := l.listener.Close()
	l.Cut()
	l.workers.Wait()
	if err != nil {
		return fmt.Errorf("closing a line: %w", err)
	}
	return nil
}

// Attempts is how many connections were tried.
func (l *Line) Attempts() int64 { return l.attempts.Load() }

// Cut breaks every connection, and those that are tried until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for end := range l.ends {
		_ = end.Close()
	}
}

// Mend lets connections pass again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.connect(client)
	}
}

func (l *Line) connect(client net.Conn) {
	l.attempts.Add(1)
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.target)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.isCut {
		_ = client.Close()
		if err == nil {
			_ = server.Close()
		}
		return
	}
	l.ends[client], l.ends[server] = true, true
	l.workers.Go(func() { l.carry(client, server) })
	l.workers.Go(func() { l.carry(server, client) })
}

func (l *Line) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range []net.Conn{to, from} {
		delete(l.ends, end)
		_ = end.Close()
	}
}
