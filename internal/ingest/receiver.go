package ingest

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 60 * time.Second
	writeAnswer       = 15 * time.Second // for an answer of some hundred bytes
	lingerTimeout     = time.Second      // for the rest of a body that was refused
	maxHeaderBytes    = 64 << 10
)

// uploadPath is the one route of the receiver.
const uploadPath = "/uploads"

// ReceiverConfig is what a receiver needs. StopTimeout has a default.
type ReceiverConfig struct {
	Queue   *queue.Queue
	Keys    KeyStore
	DocsURL string // under which the pages of the error codes are
	Log     zerolog.Logger
	Metrics prometheus.Registerer

	StopTimeout time.Duration
}

// Receiver puts uploads that come over HTTP into the queue. It needs the queue
// alone: with the database away it goes on with the credentials it knows.
type Receiver struct {
	ReceiverConfig
	credentials *credentials
	places      *places
	memory      *memory
	metrics     *receiverMetrics
}

// NewReceiver makes a receiver and registers its metrics.
func NewReceiver(c ReceiverConfig) *Receiver {
	if c.StopTimeout <= 0 {
		c.StopTimeout = DefaultStopTimeout
	}
	return &Receiver{
		ReceiverConfig: c,
		credentials:    newCredentials(c.Keys, c.Log),
		places:         newPlaces(),
		memory:         &memory{},
		metrics:        newReceiverMetrics(c.Metrics),
	}
}

// Run serves on a listener until ctx ends. Then it takes no more requests and
// finishes those that are under way, at most for StopTimeout. Its error is of
// the listener.
func (r *Receiver) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(r.Log, "", 0),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.credentials.run(ctx); return nil })
	group.Go(func() error { r.declare(ctx); return nil })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving uploads: %w", err)
		}
		return nil
	})
	group.Go(func() error { return r.shutdown(ctx, server) })
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}

// shutdown waits for the end of ctx and then for requests that are under way.
func (r *Receiver) shutdown(ctx context.Context, server *http.Server) error {
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.StopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		r.Log.Warn().Err(err).Msg("requests are cut off; what they brought was not confirmed, so it is sent again")
		_ = server.Close() // Of connections that are given up.
	}
	return nil
}

// declare makes the stream and the consumer as soon as the queue is there.
func (r *Receiver) declare(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		err := r.Queue.Declare(ctx)
		if err == nil {
			if !r.Queue.Fits() {
				r.Log.Warn().Int("bytes", roomsensor.MaxUploadBytes).
					Msg("the queue's max_payload is smaller than an upload may be; raise it to 1MB")
			}
			return
		}
		r.Log.Warn().Err(err).Msg("the stream is not declared yet; trying again")
		sleep(ctx, pause.next())
	}
}
