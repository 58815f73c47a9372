package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/cursor"
)

// The exports that run at once, unless configured otherwise: the least that
// decision 32 allows.
const (
	defaultExportsPerKey = 4
	defaultExports       = 8
)

// Config is what the API is told from outside.
type Config struct {
	DocsURL       string                // the docs pages, where error.doc_url points; without a slash at its end
	CursorSecret  []byte                // cursor.SecretBytes, the same on every replica
	ExportsPerKey int                   // CSV exports of one key at once; 0 is 4
	Exports       int                   // CSV exports in all at once; 0 is 8
	SnapshotAge   time.Duration         // what /devices/current may lag; 0 is a second, less reads for every request
	Docs          http.Handler          // serves /docs and what is below it, without a key
	Now           func() time.Time      // nil is time.Now
	Log           zerolog.Logger        // one line a request
	Metrics       prometheus.Registerer // nil keeps the metrics unregistered
}

type server struct {
	backend Backend
	keys    *keyring
	rate    *throttle
	exports *slots
	current *snapshots
	cursors *cursor.Sealer
	metrics *metrics
	docsURL string
	now     func() time.Time
	log     zerolog.Logger
}

// New builds the handler of the public listener.
func New(cfg Config, backend Backend) (http.Handler, error) {
	cursors, err := cursor.NewSealer(cfg.CursorSecret)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{
		backend: backend,
		keys:    newKeyring(backend, cfg.Now),
		rate:    newThrottle(backend, cfg.Now),
		exports: newSlots(orDefault(cfg.ExportsPerKey, defaultExportsPerKey), orDefault(cfg.Exports, defaultExports)),
		current: newSnapshots(backend, cfg.Now, cfg.SnapshotAge),
		cursors: cursors,
		metrics: metrics,
		docsURL: strings.TrimSuffix(cfg.DocsURL, "/"),
		now:     cfg.Now,
		log:     cfg.Log,
	}
	return s.router(cfg.Docs), nil
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

func (s *server) router(docs http.Handler) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(s.log) // Echo itself reports nothing but broken use of it.
	e.HTTPErrorHandler = s.fail
	e.Pre(decodePath)
	e.Use(s.observe, wholePath)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, s.guard(r))
	}
	mountDocs(e, docs, s.docsURL)
	refuseOtherMethods(e)
	return e
}
