package api

import (
	"log"
	"net/http"
	"regexp"
	"time"

	"github.com/rs/zerolog"
)

// The bounds of a connection. There is no write timeout for a whole response,
// see Paced.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 64 << 10 // devices may name 1,000 ids
)

// NewServer makes the server of the public listener, which is to be Paced. Its reports of broken
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
		ErrorLog:                     log.New(quietLog{logger}, "", 0),
	}
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
