package receiver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
)

// pipeListener is a listener with one connection, a pipe in memory, so that its deadlines follow the clock of synctest.
type pipeListener struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conn:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { close(p.closed); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// trickle posts a body byte by byte and returns the answer's text and how long it took.
func trickle(t *testing.T, authorize bool, body string, pause time.Duration) (string, time.Duration) {
	t.Helper()
	store := &keyStore{}
	_, key := store.add(uuid.New(), false)
	if !authorize {
		key = "none"
	}
	sent := make(chan struct{})
	t.Cleanup(func() { <-sent })
	near := pipe(t, New(Config{Keys: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}))
	go func() {
		defer close(sent)
		_, _ = fmt.Fprintf(near, "POST /uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", key, len(body))
		for i := range len(body) {
			time.Sleep(pause)
			if _, err := io.WriteString(near, body[i:i+1]); err != nil {
				return // The server closed the connection.
			}
		}
	}()
	started := time.Now()
	response, err := http.ReadResponse(bufio.NewReader(near), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return string(text), time.Since(started)
}

// pipe serves one connection in memory and returns its other end.
func pipe(t *testing.T, handler http.Handler) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	listener := &pipeListener{make(chan net.Conn, 1), make(chan struct{})}
	listener.conn <- far
	server := httpedge.NewServer(handler, zerolog.Nop())
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, near.Close())
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return near
}

// A body may pause and may take time, both up to a limit. The rest of a refused body is read for lingerTimeout.
func TestBodyDeadlines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		authorize   bool
		length      int
		pause, took time.Duration
		want        string
	}{
		"slow":    {true, 20, httpedge.StallTimeout - time.Second, 20 * (httpedge.StallTimeout - time.Second), "It is not valid JSON"},
		"stalled": {true, 2, httpedge.StallTimeout + time.Second, httpedge.StallTimeout + lingerTimeout, "The body came too slowly."},
		"endless": {true, 1000, httpedge.StallTimeout - time.Second, bodyTimeout + lingerTimeout, "The body came too slowly."},
		"refused": {false, 2, time.Hour, lingerTimeout, "ingest_key_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text, took := trickle(t, test.authorize, strings.Repeat("x", test.length), test.pause)
				require.Contains(t, text, test.want)
				require.Equal(t, test.took, took)
			})
		})
	}
}

// A client that reads nothing before it has sent its whole body receives the error all the same.
func TestRefusalWhileClientIsSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near := pipe(t, New(Config{Keys: &keyStore{}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}))
		_, err := fmt.Fprintf(near, "POST /uploads HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", maxBody)
		require.NoError(t, err)
		_, err = io.WriteString(near, strings.Repeat("x", maxBody))
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(near), nil)
		require.NoError(t, err)
		require.Equal(t, 401, response.StatusCode)
		require.NoError(t, response.Body.Close())
	})
}

func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	var m memoryBudget
	require.True(t, m.reserve(maxMemory))
	require.False(t, m.reserve(1))
	b := body{budget: &m}
	public := httpedge.PublicError(b.grow())
	require.Equal(t, 503, public.Code.Status())
	require.Positive(t, public.RetryAfter)
	b.release()
	require.Equal(t, int64(maxMemory), m.used.Load())
}
