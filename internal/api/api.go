package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/api/feed"
	"roomsensor/internal/cursor"
	"roomsensor/internal/export"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/tracing"
)

// readTimeout limits the reading of a whole request. Only a PATCH has a body, of at most 64 KiB.
const readTimeout = 15 * time.Second

// maxExports limits the number of exports that run at the same time. Each takes a connection of store.API while it
// reads, and up to 17 MB of memory, one of aggregates 20 MB, of nights 25 MB, until its client has received all rows:
// at most 400 MB of the 512 MiB of a process.
const maxExports = 16

// Config is the configuration of the API.
type Config struct {
	Site         httpedge.Site         // addresses of the service and of clients, for error.doc_url and the log
	Origins      []string              // from which browsers may call the API (decision 51 a)
	CursorSecret []byte                // cursor.SecretBytes bytes, the same on every replica
	SnapshotAge  time.Duration         // maximum lag of /devices/current; 0 means 1 s, negative means no cache
	Timeout      time.Duration         // of every request except exports; 0 means 10 s
	Docs         http.Handler          // serves /docs and the paths below it, without a key
	KeyUses      *httpedge.KeyUses     // nil means that the use of keys is not recorded
	Now          func() time.Time      // nil means time.Now
	Log          zerolog.Logger        // gets one line per request
	LogSample    int                   // logs one of as many fast successes; 0 means all
	Metrics      prometheus.Registerer // nil means that the metrics are not registered
	Tracer       *tracing.Tracer       // nil means no tracing
}

type server struct {
	backend Backend
	now     func() time.Time
	timeout time.Duration // of every request except exports
	exports *export.Exporter

	keys    *httpedge.Authenticator
	uses    *httpedge.KeyUses
	rate    *rateLimiter
	current *snapshots
	feed    *feed.Feed
	bodies  *fairshare.Limiter
	scans   *fairshare.Limiter
	cursors *cursor.Sealer
	metrics *metrics
	site    httpedge.Site
	clients func(*http.Request) string // returns the address of a client
	origins []string
	paths   []string // of the API, with parameters in braces
	log     zerolog.Logger
	access  *httpedge.AccessLog
	tracer  *tracing.Tracer // nil without tracing
}

// New returns the handler of the public listener.
func New(cfg Config, backend Backend) (http.Handler, error) {
	cursors, err := cursor.NewSealer(cfg.CursorSecret)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	exports := export.New(backend, maxExports, cfg.Timeout, cfg.Now)
	changes := feed.New(backend, cfg.Now, cfg.Log)
	metrics, err := newMetrics(cfg.Metrics, append(exports.Metrics(), changes.Metrics()...))
	if err != nil {
		return nil, err
	}
	bodies, scans := newBodyLimiter(), newScanLimiter()
	metrics.addLimiters(bodies, scans)
	keys := httpedge.NewKeyCache(backend.APIKeysByID, cfg.Now)
	s := &server{
		backend: backend,
		now:     cfg.Now,
		timeout: cfg.Timeout,
		exports: exports,

		keys:    httpedge.NewAuthenticator(keys, httpedge.APIKeyCodes(), cfg.Now),
		uses:    cfg.KeyUses,
		rate:    newRateLimiter(backend, cfg.Now, metrics.rate),
		current: newSnapshots(backend, cfg.Now, cfg.SnapshotAge, cfg.Timeout/2, metrics),
		feed:    changes,
		bodies:  bodies,
		scans:   scans,
		cursors: cursors,
		metrics: metrics,
		site:    cfg.Site,
		clients: cfg.Site.Clients(),
		origins: cfg.Origins,
		log:     cfg.Log,
		access:  httpedge.NewAccessLog(cfg.Log, cfg.LogSample, cfg.Metrics),
		tracer:  cfg.Tracer,
	}
	return &apiHandler{s.router(cfg.Docs), changes}, nil
}

// apiHandler is the handler of the API, which releases waiting requests when its server stops.
type apiHandler struct {
	http.Handler
	feed *feed.Feed
}

// NewServer returns the server of the public listener, which must be an httpedge.IdleListener.
func NewServer(handler http.Handler, log zerolog.Logger) *http.Server {
	server := httpedge.NewServer(handler, log)
	if h, ok := handler.(*apiHandler); ok {
		server.RegisterOnShutdown(h.feed.Stop)
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
