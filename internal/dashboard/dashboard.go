package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/tracing"
)

// readTimeout limits the reading of a whole request. A form has at most maxForm bytes.
const readTimeout = 15 * time.Second

// Config is the configuration of the dashboard.
type Config struct {
	URL       string                // base of links to the dashboard, such as https://dashboard.example, without a path
	PublicURL string                // base URL of the API, for samples, without /v1
	Clients   httpedge.Site         // determines the addresses of clients
	Sessions  scs.CtxStore          // where sessions are stored
	Replay    Replay                // stores a reject again
	Now       func() time.Time      // nil means time.Now
	Log       zerolog.Logger        // gets one line per request
	Metrics   prometheus.Registerer // nil means that the metrics are not registered
	Tracer    *tracing.Tracer       // nil means no tracing
	// CheckEvery is how often a page that is kept up to date checks that its person is still signed in. 0 means a minute.
	CheckEvery time.Duration
}

// Replay checks and stores a reject again, as a worker does. It returns what it could not store, with the reasons.
type Replay func(context.Context, roomsensor.Reject) (rest []roomsensor.Reject, err error)

// server serves the pages. Its methods are the handlers.
type server struct {
	backend   Backend
	exports   *export.Exporter
	sessions  *sessions
	templates *templates
	assets    *assets
	overviews *overviews
	live      *live
	metrics   *httpedge.RequestMetrics
	csrf      *http.CrossOriginProtection
	turns     *turns

	nights    *teamLimiter
	url       string
	roles     map[string]roomsensor.Role // that the pages need, by the paths of their routes
	publicURL string
	clients   func(*http.Request) string // returns the address of a client
	now       func() time.Time
	log       zerolog.Logger
	tracer    *tracing.Tracer // nil without tracing

	replay  Replay
	replays *teamLimiter
}

// New returns the handler of the public listener.
func New(cfg Config, backend Backend) (http.Handler, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the dashboard: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{
		backend: backend, exports: export.New(backend, maxExports, requestTimeout, cfg.Now), sessions: newSessions(cfg.Sessions, base.Scheme == "https"),
		csrf: http.NewCrossOriginProtection(), turns: newTurns(),
		nights: newTeamLimiter(maxTeamPages, maxNights, nightsBusy),
		roles:  map[string]roomsensor.Role{},
		url:    cfg.URL, publicURL: cfg.PublicURL, clients: cfg.Clients.Clients(), now: cfg.Now, log: cfg.Log,
		tracer: cfg.Tracer,
		replay: cfg.Replay, replays: newTeamLimiter(maxTeamReplays, maxAllReplays, replaysBusy),
	}
	// A proxy may change the host of a request, so that the origin of a form differs from it.
	if err := s.csrf.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, fmt.Errorf("reading the URL of the dashboard: %w", err)
	}
	if s.assets, err = newAssets(); err != nil {
		return nil, err
	}
	if s.templates, err = newTemplates(s.assets); err != nil {
		return nil, err
	}
	s.overviews = newOverviews(backend, cfg.Now, cfg.Log)
	s.live = newLive(s.overviews, cmp.Or(cfg.CheckEvery, checkInterval))
	s.live.register(cfg.Metrics)
	s.metrics = httpedge.NewRequestMetrics(cfg.Metrics, "roomsensor_dashboard")
	return &handler{s.router(), s.live}, nil
}

// handler is the handler of the dashboard, which ends its streams when its server stops.
type handler struct {
	http.Handler

	live *live
}

// NewServer returns the server of the public listener, which must be an httpedge.IdleListener.
func NewServer(pages http.Handler, log zerolog.Logger) *http.Server {
	server := httpedge.NewServer(pages, log)
	server.ReadTimeout = readTimeout
	if h, ok := pages.(*handler); ok {
		server.RegisterOnShutdown(h.live.stop)
	}
	return server
}

func (s *server) router() http.Handler {
	e := echo.New()
	e.Logger.SetOutput(s.log) // Echo logs only its own misuse.
	e.HTTPErrorHandler = s.fail
	e.Pre(trimSlash)
	e.Use(s.observe, s.refuseOtherSites)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, s.guard(r))
		if r.method == http.MethodGet {
			s.roles[r.path] = r.role
			e.Add(http.MethodHead, r.path, s.guard(r))
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Add(method, assetsPath+":hash/*", s.serveAsset)
	}
	return e
}
