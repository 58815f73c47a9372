package httpedge

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"roomsensor/internal/roomsensor"
)

// StallTimeout is the time without progress of a body, in either direction, after which its request ends. It does not
// limit how long a body takes as a whole: 16 MiB over a cellular line take minutes.
const StallTimeout = 30 * time.Second

// sendBuffer is the size of the kernel's send buffer. By default the kernel grows it to megabytes and wakes a blocked
// writer only once a third of it is free, so that a line of 40 KB/s would seem to stand still for longer than
// StallTimeout.
const sendBuffer = 256 << 10

// writeChecks is the number of times per StallTimeout that a blocked write checks whether bytes moved.
const writeChecks = 10

// IdleListener wraps a listener so that a write to one of its connections fails once no byte has moved for StallTimeout
// to 1.1 times StallTimeout, however long the write takes as a whole.
func IdleListener(listener net.Listener) net.Listener { return idleListener{listener, StallTimeout} }

type idleListener struct {
	net.Listener
	stall time.Duration
}

func (l idleListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // The server checks the type of the error.
	}
	if tcp, ok := conn.(*net.TCPConn); ok { // Tests use other connections.
		_ = tcp.SetWriteBuffer(sendBuffer) // On failure only slow clients are affected.
	}
	return &idleConn{Conn: conn, stall: l.stall}, nil
}

// idleConn is a connection whose write deadline moves on while bytes move.
type idleConn struct {
	net.Conn
	stall time.Duration
	until atomic.Pointer[time.Time] // the last deadline; nil means none
}

// SetWriteDeadline sets the last deadline of writes, beyond which theirs does not move on. A write that is waiting
// notices it within a tenth of the stall timeout.
func (c *idleConn) SetWriteDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetWriteDeadline(t) //nolint:wrapcheck // A connection returns errors unchanged.
}

// Write accepts a whole body at once. Many small writes, each with a deadline, would each be one system call, which
// took most of the time of a body of 400 KB.
func (c *idleConn) Write(p []byte) (written int, err error) {
	for last := time.Now(); ; {
		deadline, until := time.Now().Add(c.stall/writeChecks), c.until.Load()
		final := until != nil && !until.IsZero() && until.Before(deadline)
		if final {
			deadline = *until
		}
		_ = c.Conn.SetWriteDeadline(deadline) // On failure the write fails, too.
		n, err := c.Conn.Write(p[written:])
		if n > 0 {
			written, last = written+n, time.Now()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || final || time.Since(last) >= c.stall {
			return written, err //nolint:wrapcheck // A writer returns errors unchanged.
		}
	}
}

// A body must arrive at 1 KiB/s or faster on average: bodyBlock bytes must arrive within bodyBlockTimeout. Otherwise a
// client that sends a byte from time to time could hold what the service keeps for its request.
const (
	bodyBlock        = 60 << 10
	bodyBlockTimeout = time.Minute
)

// BodyReader reads the body of a request. It fails with os.ErrDeadlineExceeded if nothing arrives for StallTimeout, if
// the body arrives slower than 1 KiB/s on average over a minute, or at its time limit.
type BodyReader struct {
	body       io.Reader
	controller *http.ResponseController
	until      time.Time
	blockUntil time.Time
	blockLeft  int // bytes that must arrive until then
}

// NewBodyReader reads body, which is the body of a request to w, for at most the time limit. The caller must call Done.
func NewBodyReader(w http.ResponseWriter, body io.Reader, limit time.Duration) *BodyReader {
	return &BodyReader{body: body, controller: http.NewResponseController(w), until: time.Now().Add(limit)}
}

func (b *BodyReader) Read(p []byte) (int, error) {
	now := time.Now()
	if b.blockLeft <= 0 {
		b.blockUntil, b.blockLeft = now.Add(bodyBlockTimeout), bodyBlock
	}
	deadline := roomsensor.Earlier(now.Add(StallTimeout), roomsensor.Earlier(b.blockUntil, b.until))
	_ = b.controller.SetReadDeadline(deadline) // In a test there may be no connection.
	n, err := b.body.Read(p)
	b.blockLeft -= n
	return n, err //nolint:wrapcheck // A reader returns io.EOF unchanged.
}

// Done removes the read deadline. If it stayed, it would cancel the context of the request while the request is
// handled.
func (b *BodyReader) Done() { _ = b.controller.SetReadDeadline(time.Time{}) }

// Abort ends a response so that no client takes it for complete: a chunked body lacks its last chunk. HTTP/1.0 has no
// chunks and takes the end of the connection for the end of the body, so there the connection is reset. Abort does not
// return: it panics with http.ErrAbortHandler.
func Abort(w http.ResponseWriter, r *http.Request) {
	if !r.ProtoAtLeast(1, 1) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			reset(conn)
		}
	}
	panic(http.ErrAbortHandler)
}

func reset(conn net.Conn) {
	if idle, ok := conn.(*idleConn); ok {
		conn = idle.Conn
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // With it Close sends a reset.
	}
	_ = conn.Close()
}
