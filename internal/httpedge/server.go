package httpedge

import (
	"log"
	"net/http"
	"regexp"
	"time"

	"github.com/rs/zerolog"
)

const (
	// readHeaderTimeout ends a connection whose client does not send the header of a request.
	readHeaderTimeout = 5 * time.Second
	// keepAliveTimeout closes a connection without requests.
	keepAliveTimeout = time.Minute
	// maxHeaderBytes has room for the URL of an export of 1,000 devices, which is 37 KB long.
	maxHeaderBytes = 64 << 10
)

// NewServer makes the server of a listener, with the settings that all listeners share. There is no write timeout,
// which would limit a response as a whole; see IdleListener.
func NewServer(handler http.Handler, logger zerolog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       keepAliveTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(serverLog{logger}, "", 0),
	}
}

// secrets matches what a line of net/http's own log must not show: query strings and keys (decision 26).
var secrets = regexp.MustCompile(`(?i)\?\S*|rs[ki]_\S*|key=\S*`)

// serverLog logs what net/http reports about connections.
type serverLog struct {
	logger zerolog.Logger
}

func (l serverLog) Write(line []byte) (int, error) {
	l.logger.Warn().Bytes("detail", secrets.ReplaceAll(line, []byte("..."))).Msg("connection failed")
	return len(line), nil
}
