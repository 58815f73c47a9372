package httpedge_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
)

// oneConn is a listener with one connection.
type oneConn struct{ conns chan net.Conn }

func (l oneConn) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (l oneConn) Close() error   { close(l.conns); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestUselessBody sends bodies with methods that have none, to a handler that lifts the read deadline, as an export does,
// unless CheckBody refuses them.
func TestUselessBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request string
		status  int
		takes   time.Duration
	}{
		"none":             {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, 0},
		"empty":            {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, 0},
		"small":            {"HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 200, 0},
		"small chunk":      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, 0},
		"large":            {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n", 400, 0},
		"never comes":      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", 400, 5 * time.Second},
		"chunk never ends": {"OPTIONS / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 400, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if httpedge.CheckBody(r) != nil && r.Context().Err() == nil {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
					_, _ = w.Write(bytes.Repeat([]byte("x"), 10_000))
				})
				client, end := net.Pipe()
				l := oneConn{make(chan net.Conn, 1)}
				l.conns <- end
				server := httpedge.NewServer(handler, zerolog.Nop())
				go func() { _ = server.Serve(l) }()
				began := time.Now()
				go func() { _, _ = fmt.Fprint(client, test.request) }()
				method, _, _ := strings.Cut(test.request, " ")
				r, err := http.NewRequest(method, "/", nil)
				require.NoError(t, err)
				response, err := http.ReadResponse(bufio.NewReader(client), r)
				require.NoError(t, err)
				require.Equal(t, test.status, response.StatusCode)
				require.Equal(t, test.takes, time.Since(began))
				require.NoError(t, client.Close())
				require.NoError(t, server.Close())
			})
		})
	}
}
