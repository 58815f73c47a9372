package httpedge

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"regexp"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
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
		Handler:           bodyCheck{handler},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       keepAliveTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(serverLog{logger}, "", 0),
	}
}

// maxUselessBody is the size in bytes of a body that a method without one may have: some clients send an empty object.
const maxUselessBody = 1 << 10

// bodyCheck receives the body of a method that has none before anything else. The handler does not get it, and
// CheckBody refuses one that is large or does not come. Before net/http sends the header of a response, it reads the
// rest of a body that was announced. A handler that lifts the read deadline, such as that of an export, would hold what
// it has for as long as the client likes.
type bodyCheck struct{ http.Handler }

// Unwrap returns the handler of the listener.
func (b bodyCheck) Unwrap() http.Handler { return b.Handler }

func (b bodyCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	withoutBody := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if !withoutBody || r.ContentLength == 0 {
		b.Handler.ServeHTTP(w, r)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readHeaderTimeout))
	if r.ContentLength <= maxUselessBody {
		n, err := io.CopyN(io.Discard, r.Body, maxUselessBody+1)
		if n <= maxUselessBody && errors.Is(err, io.EOF) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			r.Body, r.ContentLength = http.NoBody, 0
			b.Handler.ServeHTTP(w, r)
			return
		}
	}
	w.Header().Set("Connection", "close")
	// After a body that did not come, net/http has canceled the context.
	r = r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), uselessBody{}, true))
	r.Body, r.ContentLength = http.NoBody, 0
	b.Handler.ServeHTTP(w, r)
}

// uselessBody is the key of a context whose request has a body that CheckBody refuses.
type uselessBody struct{}

// CheckBody returns the error of a request whose method has no body, but which came with one that bodyCheck did not
// accept. Every handler that may take long must call it; those that need a key, after they checked it (decision 22).
func CheckBody(r *http.Request) error {
	if r.Context().Value(uselessBody{}) == nil {
		return nil
	}
	return roomsensor.Invalid("", "A "+BoundedMethod(r.Method)+" request has no body. Send it without one.")
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
