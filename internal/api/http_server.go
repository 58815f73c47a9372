package api

import (
	"context"
	"log"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/rs/zerolog"
)

// The bounds of a connection. There is no write timeout for a whole response:
// every piece of it has its own (pacedWriter).
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 64 << 10 // devices may name 1,000 ids

	// sendBuffer bounds what the kernel takes ahead of the client. Left alone
	// it grows to megabytes, and as a writer that found it full is woken only
	// once a third is free, a line of 40 KB/s would seem to stand still for
	// longer than stallTimeout.
	sendBuffer = 256 << 10
)

// NewServer makes the server of the public listener. Its reports of broken
// connections go to the log without anything that looks like a URL's query or
// a key.
func NewServer(addr string, handler http.Handler, logger zerolog.Logger) *http.Server {
	return &http.Server{
		Addr:                         addr,
		Handler:                      handler,
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true, // OPTIONS * is an unknown path like any other.
		ConnContext:                  boundSendBuffer,
		ErrorLog:                     log.New(quietLog{logger}, "", 0),
	}
}

// boundSendBuffer prepares a connection. One without such a buffer, as a
// test's, needs none.
func boundSendBuffer(ctx context.Context, conn net.Conn) context.Context {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // Without it the connection is as good, but for slow lines.
	}
	return ctx
}

// secretive is what a line of the server's own log must not show: queries and keys.
var secretive = regexp.MustCompile(`(?i)\?\S*|rs[ki]_\S*|key=\S*`)

type quietLog struct {
	logger zerolog.Logger
}

func (q quietLog) Write(line []byte) (int, error) {
	q.logger.Warn().Bytes("detail", secretive.ReplaceAll(line, []byte("..."))).Msg("connection failed")
	return len(line), nil
}
