package app_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is the way to a server, which a test can cut: connections break, and
// new ones are closed at once.
type line struct {
	url    string // of the server, by way of the line
	target string

	attempts atomic.Int64 // to connect

	mu      sync.Mutex
	isCut   bool
	ends    map[net.Conn]bool
	workers sync.WaitGroup
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{target: u.Host, ends: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	l.url = u.String()
	l.workers.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			l.connect(client)
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		l.cut()
		l.workers.Wait()
	})
	return l
}

func (l *line) connect(client net.Conn) {
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

func (l *line) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range []net.Conn{to, from} {
		delete(l.ends, end)
		_ = end.Close()
	}
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for end := range l.ends {
		_ = end.Close()
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}
