package api

import (
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// stallTimeout ends a response of which nothing could be sent for so long.
	stallTimeout = 30 * time.Second

	// sendBuffer bounds what the kernel takes ahead of the client. Left alone
	// it grows to megabytes, and as a writer that found it full is woken only
	// once a third is free, a line of 40 KB/s would seem to stand still for
	// longer than stallTimeout.
	sendBuffer = 256 << 10
)

// Paced makes what the server of the public listener is to serve on. A write
// on its connections has no deadline as a whole, as an export over a slow line
// takes minutes: it fails once for 30 to 33 seconds no byte was taken.
func Paced(listener net.Listener) net.Listener { return pacedListener{listener, stallTimeout} }

type pacedListener struct {
	net.Listener
	stall time.Duration
}

func (l pacedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // The server looks at its kind.
	}
	if tcp, ok := conn.(*net.TCPConn); ok { // A test's may be another.
		_ = tcp.SetWriteBuffer(sendBuffer) // Without it the connection is as good, but for slow lines.
	}
	return &pacedConn{conn, l.stall}, nil
}

type pacedConn struct {
	net.Conn
	stall time.Duration
}

// looks is how often a write that waits looks whether a part was taken.
const looks = 10

// Write has a deadline that moves on whenever a part was taken. So a body can be
// written in one piece: in many small ones each goes through the kernel alone,
// which took most of the time of a body of 400 KB.
func (c *pacedConn) Write(p []byte) (written int, err error) {
	for last := time.Now(); ; {
		_ = c.SetWriteDeadline(time.Now().Add(c.stall / looks)) // The write says what is wrong with the connection.
		n, err := c.Conn.Write(p[written:])
		if n > 0 {
			written, last = written+n, time.Now()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(last) >= c.stall {
			return written, err //nolint:wrapcheck // A writer passes errors on as they are.
		}
	}
}

// breakConnection ends a response so that no client takes it for complete: a
// body in chunks lacks its last one. HTTP/1.0 knows no chunks and takes the
// end of the connection for the end of the body, so there it is reset.
func breakConnection(c echo.Context) {
	if !c.Request().ProtoAtLeast(1, 1) {
		if conn, _, err := http.NewResponseController(c.Response()).Hijack(); err == nil {
			reset(conn)
		}
	}
	panic(http.ErrAbortHandler)
}

func reset(conn net.Conn) {
	if paced, ok := conn.(*pacedConn); ok {
		conn = paced.Conn
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // The reset is the best that can be done; so is closing.
	}
	_ = conn.Close()
}
