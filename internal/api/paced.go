package api

import (
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// stallTimeout ends a response of which nothing could be sent for so long.
	stallTimeout = 30 * time.Second
	// pace is how much is sent under one deadline: small enough that any line
	// which moves at all takes it in time.
	pace = 16 << 10
)

// pacedWriter gives every piece of a response a write deadline of its own, in
// place of one for the whole: an export over a slow line takes minutes.
type pacedWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

func newPacedWriter(w http.ResponseWriter) *pacedWriter {
	return &pacedWriter{w, http.NewResponseController(w)}
}

func (w *pacedWriter) Write(p []byte) (written int, err error) {
	for {
		piece := p[written:min(written+pace, len(p))]
		// A writer without deadlines, such as a test's, needs none.
		_ = w.controller.SetWriteDeadline(time.Now().Add(stallTimeout))
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err //nolint:wrapcheck // A writer passes errors on as they are.
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // The reset is the best that can be done; so is closing.
	}
	_ = conn.Close()
}
