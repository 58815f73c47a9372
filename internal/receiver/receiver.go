package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/cursor"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/queue"
	"roomsensor/internal/tracing"
	"roomsensor/internal/upload"
)

// DefaultStopTimeout limits the requests that are in progress when the receiver stops. It is less than the 20 seconds
// that a process has to stop.
const DefaultStopTimeout = 15 * time.Second

// Config is the configuration of a receiver. Numbers that are 0 have a default.
type Config struct {
	Queue    *queue.Queue
	Keys     httpedge.KeyTable
	KeyUses  *httpedge.KeyUses // nil means that the use of keys is not recorded
	Database Database
	DocsURL  string         // of the docs pages, which describe the error codes; without a slash at its end
	Proxies  []netip.Prefix // whose X-Forwarded-For names the address of the client
	Log      zerolog.Logger
	Metrics  prometheus.Registerer
	Tracer   *tracing.Tracer // nil means no tracing

	LogSample   int // logs one of as many fast successes; 0 means all
	StopTimeout time.Duration
	Memory      int64 // for requests, in bytes; at least 64 MiB, room for a request of the largest size

	// RequestsPerSecond and BytesPerSecond are the share of a credential (decision 53 a).
	RequestsPerSecond int
	BytesPerSecond    int64
}

// Receiver publishes uploads that arrive over HTTP to the queue. For that it needs the queue alone: while the database
// is unavailable, it goes on with the keys that it knows. Dry runs and lists of rejects need the database.
type Receiver struct {
	Config
	keyList *httpedge.KeyList
	auth    *httpedge.Authenticator
	limiter *fairshare.Limiter // of requests
	memory  *fairshare.Limiter // of bytes
	// lingering has an element for each refused body that is being read.
	lingering   chan struct{}
	inflating   *fairshare.Limiter // of bodies that are decompressed
	inflateWait time.Duration      // for others that are decompressed
	rates       *rates
	database    *databaseUses
	cursors     atomic.Pointer[cursor.Sealer] // nil until the first list of rejects
	metrics     *metrics
	access      *httpedge.AccessLog
	clients     func(*http.Request) string // returns the address of a client
}

// New makes a receiver and registers its metrics.
func New(c Config) *Receiver {
	c.StopTimeout = cmp.Or(c.StopTimeout, DefaultStopTimeout)
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.RequestsPerSecond = cmp.Or(c.RequestsPerSecond, DefaultRequestsPerSecond)
	c.BytesPerSecond = cmp.Or(c.BytesPerSecond, DefaultBytesPerSecond)
	list, memory := httpedge.NewKeyList(c.Keys, c.Log), newMemoryLimiter(int(c.Memory))
	return &Receiver{
		Config:  c,
		keyList: list,
		auth:    httpedge.NewAuthenticator(list, httpedge.IngestKeyCodes(), time.Now),
		limiter: fairshare.New(fairshare.Config{Name: "uploads", Key: fairshare.Limit{
			Most: maxPerKey, RetryAfter: keyRetryAfter,
			Message: "This credential has too many uploads in progress. Send fewer at the same time.",
		}}),
		memory:      memory,
		lingering:   make(chan struct{}, maxLingering),
		inflating:   newInflateLimiter(),
		inflateWait: inflateWait,
		rates:       newRates(c.RequestsPerSecond, c.BytesPerSecond),
		database:    newDatabaseUses(),
		metrics:     newMetrics(&c, memory),
		access:      httpedge.NewAccessLog(c.Log, c.LogSample, c.Metrics),
		clients:     (&httpedge.Site{Proxies: c.Proxies}).Clients(),
	}
}

// KeysLoaded is closed once all ingest keys were read. Until then, each key is looked up.
func (r *Receiver) KeysLoaded() <-chan struct{} { return r.keyList.Loaded() }

// Run serves on a listener until ctx ends. Then it accepts no more requests and finishes those that are in progress,
// for at most StopTimeout. Its error is that of the listener.
func (r *Receiver) Run(ctx context.Context, listener net.Listener) error {
	server := httpedge.NewServer(r, r.Log)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.keyList.Run(ctx); return nil })
	group.Go(func() error { r.Queue.TrackBacklogs(ctx, r.Log); return nil })
	group.Go(func() error { return serve(server, listener) })
	group.Go(func() error { return r.shutdown(ctx, server) })
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}

// serve serves until the server is shut down. A connection ends whose client does not read the responses, even to a
// request without a credential.
func serve(server *http.Server, listener net.Listener) error {
	if err := server.Serve(httpedge.IdleListener(listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving uploads: %w", err)
	}
	return nil
}

// shutdown waits for the end of ctx and then for the requests that are in progress.
func (r *Receiver) shutdown(ctx context.Context, server *http.Server) error {
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.StopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		r.Log.Warn().Err(err).Msg("shutdown timeout: aborting requests in progress (clients will retry)")
		_ = server.Close() // The connections are given up anyway.
	}
	return nil
}

// metrics are the Prometheus metrics of a receiver.
type metrics struct {
	*httpedge.RequestMetrics
	uploads, bytes prometheus.Counter
	ignored        *upload.IgnoredCounter
}

func newMetrics(c *Config, memory *fairshare.Limiter) *metrics {
	factory := promauto.With(c.Metrics)
	gauge := func(name, help string, value func() int64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "roomsensor_receiver_" + name, Help: help},
			func() float64 { return float64(value()) })
	}
	gauge("memory_bytes", "Memory that requests in progress have reserved.", func() int64 { return int64(memory.Used()) })
	gauge("memory_max_bytes", "Memory for requests; beyond it they get 503.", func() int64 { return c.Memory })
	gauge("backlog_bytes", "Uploads of the team with the most that this receiver has published and no worker has stored.",
		func() int64 { bytes, _ := c.Queue.LargestBacklog(); return bytes })
	gauge("backlog_max_bytes", "Limit of roomsensor_receiver_backlog_bytes; beyond it the team gets 429.",
		func() int64 { _, limit := c.Queue.LargestBacklog(); return limit })
	return &metrics{
		RequestMetrics: httpedge.NewRequestMetrics(c.Metrics, "roomsensor_receiver"),
		uploads: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_receiver_uploads_total", Help: "Uploads that the queue stored and that were confirmed.",
		}),
		bytes: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_receiver_bytes_total", Help: "Bytes of confirmed uploads, decompressed.",
		}),
		ignored: upload.NewIgnoredCounter(c.Metrics, "roomsensor_receiver_ignored_fields_total",
			"Unknown members of confirmed uploads, by name; the first names of a process, and other for the rest."),
	}
}

// count counts uploads, or messages of a source, that the queue has stored.
func (m *metrics) count(uploads, bytes int) {
	m.uploads.Add(float64(uploads))
	m.bytes.Add(float64(bytes))
}
