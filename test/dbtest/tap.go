package dbtest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

// Message is one message of PostgreSQL's protocol.
type Message struct {
	// Connection tells the connections of a tap apart.
	Connection string
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
	proxy, err := proctest.NewProxyFunc(t.Context(), databaseURL, func(to, from net.Conn, fromServer bool) {
		client := from
		if fromServer {
			client = to
		}
		forward(to, from, fromServer, func(m Message) bool {
			m.Connection, m.FromServer = client.RemoteAddr().String(), fromServer
			return see(m)
		})
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	u, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	u.RawQuery = "sslmode=disable" // The proxy cannot read encrypted messages.
	return u.String()
}

// forward forwards messages until either connection is closed, or see returns false.
func forward(to io.Writer, from io.Reader, fromServer bool, see func(Message) bool) {
	in := bufio.NewReader(from)
	for started := fromServer; ; started = true {
		text, message, err := receive(in, started)
		if err != nil {
			return
		}
		if !see(message) {
			return
		}
		if _, err := to.Write(text); err != nil {
			return
		}
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
