// Package page is what all pages of the dashboard share: a request with its checks, layout and templates, forms,
// errors and sessions.
//
//	site.go       configuration and handler of a Site
//	route.go      Route, and the navigation
//	request.go    one request: request id, recovery, access log, metrics, security headers
//	guard.go      the checks before a handler: session, membership, role
//	limits.go     what a team may do at the same time
//	visit.go      what handlers get: who, which team; how they read forms and answer
//	errors.go     errors as pages
//	session.go    sessions and their cookie
//	templates.go  layout and pages; functions.go has the functions of templates
//	assets.go     style sheets and scripts
//	web/          the embedded files: layout, pages, parts, style sheets, scripts
package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/tracing"
)

// Config is the configuration of a Site.
type Config struct {
	URL      string           // base of links to the dashboard, such as https://dashboard.example, without a path
	Clients  httpedge.Site    // determines the addresses of clients
	Sessions scs.CtxStore     // where sessions are stored
	Now      func() time.Time // nil means time.Now
	Log      zerolog.Logger   // gets one line per request

	LogSample int                   // logs one of as many fast successes; 0 means all
	Metrics   prometheus.Registerer // nil means that the metrics are not registered
	Tracer    *tracing.Tracer       // nil means no tracing
}

// Backend finds people and what they may do. Every request needs it.
type Backend interface {
	User(ctx context.Context, userID uuid.UUID) (accounts.User, error)
	Membership(ctx context.Context, teamID, userID uuid.UUID) (accounts.Membership, error)
}

// Site serves pages. It has what all of them share.
type Site struct {
	backend   Backend
	sessions  *sessions
	templates templates
	assets    *assets
	metrics   *httpedge.RequestMetrics
	csrf      *http.CrossOriginProtection
	turns     *turns
	visits    *fairshare.Limiter         // of the requests in progress of a session, and of all
	strangers *fairshare.Limiter         // of those on public pages of a network, and of all
	roles     map[string]roomsensor.Role // that the pages need, by the paths of their routes
	clients   func(*http.Request) string // returns the address of a client
	now       func() time.Time
	log       zerolog.Logger
	access    *httpedge.AccessLog
	tracer    *tracing.Tracer // nil without tracing
}

// New returns a Site without pages.
func New(cfg Config, backend Backend) (*Site, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the dashboard: %w", err)
	}
	s := &Site{
		backend: backend, sessions: newSessions(cfg.Sessions, base.Scheme == "https"),
		csrf: http.NewCrossOriginProtection(), turns: newTurns(),
		visits: newVisits("visits", maxAllVisits), strangers: newVisits("public_visits", maxPublicVisits),
		roles:   map[string]roomsensor.Role{},
		clients: cfg.Clients.Clients(), now: cfg.Now, log: cfg.Log,
		access: httpedge.NewAccessLog(cfg.Log, cfg.LogSample, cfg.Metrics), tracer: cfg.Tracer,
		metrics: httpedge.NewRequestMetrics(cfg.Metrics, "roomsensor_dashboard"),
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
	return s, nil
}

// Handler returns the handler of all routes and of the assets.
func (s *Site) Handler(routes []Route) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(s.log) // Echo logs only its own misuse.
	e.HTTPErrorHandler = s.fail
	e.Pre(trimSlash)
	e.Use(s.observe, s.refuseOtherSites)
	for _, r := range routes {
		e.Add(r.Method, r.Path, s.guard(r))
		if r.Method == http.MethodGet {
			s.roles[r.Path] = r.Role
			e.Add(http.MethodHead, r.Path, s.guard(r))
		}
	}
	for _, r := range routes {
		if _, shown := s.roles[r.Path]; r.Method == http.MethodPost && !shown {
			e.GET(r.Path, s.redirectToPage)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Add(method, assetsPath+":hash/*", s.serveAsset)
	}
	return e
}

// redirectToPage leads from the address of a form to its page: after a refused form, the browser shows the address of
// the form, and people reload it or send it to others.
func (s *Site) redirectToPage(c echo.Context) error {
	return c.Redirect(http.StatusSeeOther, s.pageOf(c)) //nolint:wrapcheck // It fails only for another status.
}

// pageOf returns the address of the page that has the form of a request: the longest beginning of its path that is a
// page.
func (s *Site) pageOf(c echo.Context) string {
	route, path := strings.Split(c.Path(), "/"), strings.Split(c.Request().URL.EscapedPath(), "/")
	for n := len(route); n > 1; n-- {
		if _, isPage := s.roles[strings.Join(route[:n], "/")]; isPage && len(path) >= n {
			return strings.Join(path[:n], "/")
		}
	}
	return "/"
}
