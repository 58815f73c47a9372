package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
)

// readTimeout limits the reading of a whole request. Only a PATCH has a body, of at most 64 KiB.
const readTimeout = 15 * time.Second

// Config is the configuration of the API.
type Config struct {
	Site         httpedge.Site         // addresses of the service and of clients, for error.doc_url and the log
	Origins      []string              // from which browsers may call the API (decision 51 a)
	CursorSecret []byte                // cursor.SecretBytes bytes, the same on every replica
	SnapshotAge  time.Duration         // maximum lag of /devices/current; 0 means 1 s, negative means no cache
	Docs         http.Handler          // serves /docs and the paths below it, without a key
	Now          func() time.Time      // nil means time.Now
	Log          zerolog.Logger        // gets one line per request
	Metrics      prometheus.Registerer // nil means that the metrics are not registered
}

type server struct {
	backend Backend
	keys    *httpedge.Authenticator
	rate    *rateLimiter
	exports *exportSlots
	current *snapshots
	feed    *feed
	bodies  *shareLimiter
	scans   *shareLimiter
	cursors *cursor.Sealer
	metrics *metrics
	site    httpedge.Site
	clients func(*http.Request) string // returns the address of a client
	origins []string
	paths   []string // of the API, with parameters in braces
	now     func() time.Time
	log     zerolog.Logger
}

// New returns the handler of the public listener.
func New(cfg Config, backend Backend) (http.Handler, error) {
	cursors, err := cursor.NewSealer(cfg.CursorSecret)
	if err != nil {
		return nil, err
	}
	exports := newExportSlots()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	feed := newFeed(backend, cfg.Now, cfg.Log)
	metrics, err := newMetrics(cfg.Metrics, append(exports.metrics(), feed.metrics()...))
	if err != nil {
		return nil, err
	}
	keys := httpedge.NewKeyCache(backend.APIKeysByID, cfg.Now)
	s := &server{
		backend: backend,
		keys:    httpedge.NewAuthenticator(keys, httpedge.APIKeyCodes(), cfg.Now),
		rate:    newRateLimiter(backend, cfg.Now),
		exports: exports,
		current: newSnapshots(backend, cfg.Now, cfg.SnapshotAge),
		feed:    feed,
		bodies:  newBodyLimiter(metrics.bodies),
		scans:   newScanLimiter(metrics.scans),
		cursors: cursors,
		metrics: metrics,
		site:    cfg.Site,
		clients: cfg.Site.Clients(),
		origins: cfg.Origins,
		now:     cfg.Now,
		log:     cfg.Log,
	}
	return &apiHandler{s.router(cfg.Docs), feed}, nil
}

// apiHandler is the handler of the API, which releases waiting requests when its server stops.
type apiHandler struct {
	http.Handler
	feed *feed
}

// NewServer returns the server of the public listener, which must be an httpedge.IdleListener.
func NewServer(handler http.Handler, log zerolog.Logger) *http.Server {
	server := httpedge.NewServer(handler, log)
	if h, ok := handler.(*apiHandler); ok {
		server.RegisterOnShutdown(h.feed.stop)
	}
	server.ReadTimeout = readTimeout
	server.DisableGeneralOptionsHandler = true // OPTIONS * is an unknown path like any other.
	return server
}

func (s *server) router(docs http.Handler) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(s.log) // Echo logs only its own misuse.
	e.HTTPErrorHandler = s.fail
	e.Pre(decodePath)
	e.Use(s.observe, s.allowOrigins, rejectEmptySegments)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, s.guard(r))
		s.addPath(r.path)
	}
	mountDocs(e, docs)
	refuseOtherMethods(e)
	return e
}

// metrics are the Prometheus metrics of the API. Requests are labeled with the template of their route, never with a
// URL.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	bodies    prometheus.Gauge
	scans     prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer, others []prometheus.Collector) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "roomsensor_api_requests_total",
			Help: "Requests by route, method and status. The status of a 501, which the client caused, is 4xx.",
		}, []string{"route", "method", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "roomsensor_api_request_duration_seconds",
			Help:    "Duration of requests from arrival to the end of the response.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120},
		}, []string{"route", "method"}),
		bodies: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_api_list_bytes",
			Help: "Bytes of the lists that are being read or sent; at the limit of 64 MiB, requests wait.",
		}),
		scans: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_api_scans_running",
			Help: "Pages of coverage, gaps, aggregates and changes that are being read; at the limit of 8, requests wait.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range append(others, m.requests, m.durations, m.bodies, m.scans) {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) observe(e *httpedge.AccessEntry) {
	m.requests.WithLabelValues(e.Route, e.Method, e.StatusLabel()).Inc()
	m.durations.WithLabelValues(e.Route, e.Method).Observe(e.Duration.Seconds())
}
