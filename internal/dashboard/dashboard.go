package dashboard

import (
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/dashboard/assignments"
	"roomsensor/internal/dashboard/devices"
	"roomsensor/internal/dashboard/exports"
	"roomsensor/internal/dashboard/keys"
	"roomsensor/internal/dashboard/nights"
	"roomsensor/internal/dashboard/overview"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/dashboard/people"
	"roomsensor/internal/dashboard/rejects"
	"roomsensor/internal/dashboard/shares"
	"roomsensor/internal/dashboard/sources"
	"roomsensor/internal/dashboard/team"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/password"
)

// readTimeout limits the reading of a whole request. A form has at most maxForm bytes.
const readTimeout = 15 * time.Second

// Config is the configuration of the dashboard.
type Config struct {
	page.Config

	PublicURL string                 // base URL of the API, for samples, without /v1
	SourceURL func(id string) string // returns the URL to which the sender of a source posts
	Replay    rejects.Replay         // stores a reject again
	// CheckEvery is how often a page that is kept up to date checks that its person is still signed in. 0 means a minute.
	CheckEvery time.Duration
	// RefusedPasswords are those that nobody may choose.
	RefusedPasswords password.List
}

// Backend has all stored data that the pages need. Its methods return roomsensor.ErrNotFound for what does not exist or
// belongs to another team, and a *roomsensor.Error with the code overloaded if the database is unavailable or too busy.
type Backend interface { //nolint:interfacebloat // One for each package of pages.
	page.Backend
	people.Backend
	team.Backend
	overview.Backend
	devices.Backend
	assignments.Backend
	nights.Backend
	exports.Backend
	keys.Backend
	rejects.Backend
	shares.Backend
	sources.Backend
}

// pages are the handlers of all pages.
type pages struct {
	people      *people.Pages
	team        *team.Pages
	overview    *overview.Pages
	devices     *devices.Pages
	assignments *assignments.Pages
	nights      *nights.Pages
	exports     *exports.Pages
	keys        *keys.Pages
	rejects     *rejects.Pages
	shares      *shares.Pages
	sources     *sources.Pages
}

// New returns the handler of the public listener.
func New(cfg Config, backend Backend) (http.Handler, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	site, err := page.New(cfg.Config, backend)
	if err != nil {
		return nil, err
	}
	p := &pages{
		people: people.New(backend, cfg.URL, cfg.RefusedPasswords), team: team.New(backend),
		overview: overview.New(overview.Config{
			PublicURL: cfg.PublicURL, Now: cfg.Now, Log: cfg.Log, Metrics: cfg.Metrics, CheckEvery: cfg.CheckEvery,
		}, backend),
		devices: devices.New(backend), assignments: assignments.New(backend), nights: nights.New(backend),
		exports: exports.New(backend, cfg.PublicURL, cfg.Now),
		keys:    keys.New(backend, cfg.PublicURL), rejects: rejects.New(backend, cfg.Replay),
		sources: sources.New(backend, cfg.SourceURL, cfg.PublicURL+"/docs"),
	}
	p.shares = shares.New(backend, shares.Content{
		Night: p.nights.ShowShared, Person: p.nights.ShowSharedPerson, Wall: p.overview.ShowWall, Rooms: p.overview.Rooms,
	}, cfg.URL)
	return &handler{site.Handler(p.routes()), p.overview.Stop}, nil
}

// handler is the handler of the dashboard, which ends its streams when its server stops.
type handler struct {
	http.Handler

	stop func()
}

// NewServer returns the server of the public listener, which must be an httpedge.IdleListener.
func NewServer(pages http.Handler, log zerolog.Logger) *http.Server {
	server := httpedge.NewServer(pages, log)
	server.ReadTimeout = readTimeout
	if h, ok := pages.(*handler); ok {
		server.RegisterOnShutdown(h.stop)
	}
	return server
}
