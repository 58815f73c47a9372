package dbtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Message is one message of PostgreSQL's protocol.
type Message struct {
	// FromServer is true for messages from the server to the client.
	FromServer bool
	// Type is the first byte, or 0 for the first message of a connection.
	Type byte
	Body []byte
}

// IsStatement reports whether a message makes the server execute something.
func (m *Message) IsStatement() bool { return !m.FromServer && (m.Type == 'E' || m.Type == 'Q') }

// Tap starts a proxy to a database and returns its URL. The proxy calls see with each message before it forwards it.
// The message and all later ones on its connection wait until see returns; if see returns false, the proxy closes the
// connection instead. Several goroutines call see at once, and see must not keep the message.
func Tap(t testing.TB, databaseURL string, see func(Message) (forward bool)) (proxyURL string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	tap := &tap{server: u.Host, see: see, ends: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	u.RawQuery = "sslmode=disable" // The proxy cannot read encrypted messages.
	tap.work.Go(func() { tap.accept(listener) })
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		tap.close()
		tap.work.Wait()
	})
	return u.String()
}

type tap struct {
	server string
	see    func(Message) bool
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	ends   map[net.Conn]bool
}

func (t *tap) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", t.server)
		if err != nil || !t.keep(client, server) {
			_ = client.Close()
			continue
		}
		t.work.Go(func() { t.forward(server, client, false) })
		t.work.Go(func() { t.forward(client, server, true) })
	}
}

func (t *tap) keep(client, server net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = server.Close()
		return false
	}
	t.ends[client], t.ends[server] = true, true
	return true
}

func (t *tap) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for end := range t.ends {
		_ = end.Close()
	}
}

// forward forwards messages until either connection is closed, and closes both.
func (t *tap) forward(to, from net.Conn, fromServer bool) {
	in := bufio.NewReader(from)
	for started := fromServer; ; started = true {
		text, message, err := receive(in, started)
		if err != nil {
			break
		}
		message.FromServer = fromServer
		if !t.see(message) {
			break
		}
		if _, err := to.Write(text); err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, end := range []net.Conn{to, from} {
		delete(t.ends, end)
		_ = end.Close()
	}
}

// receive reads one message. The first message of a client has no type.
func receive(in *bufio.Reader, typed bool) (text []byte, m Message, err error) {
	head := 4 // The length field, which includes itself.
	if typed {
		head++
	}
	start, err := in.Peek(head)
	if err != nil {
		return nil, m, err //nolint:wrapcheck // The caller only ends its loop.
	}
	if typed {
		m.Type = start[0]
	}
	text = make([]byte, head-4+int(binary.BigEndian.Uint32(start[head-4:])))
	_, err = io.ReadFull(in, text)
	m.Body = text[head:]
	return text, m, err //nolint:wrapcheck // Like above.
}
