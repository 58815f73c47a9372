package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"roomsensor/docs"
	"roomsensor/internal/api"
	"roomsensor/internal/config"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/store"
	"roomsensor/internal/tracing"
)

// purgeInterval is how often a process deletes rows that have no effect any more. The API deletes idempotency keys
// older than 24 hours, the counted requests of API keys that had none for 10 minutes, sums of hours that are in no
// snapshot any more, and entries of the audit log older than AUDIT_KEEP; the dashboard deletes expired sessions and old
// attempts to sign in.
const purgeInterval = 10 * time.Minute

// RunAPI runs an API process until ctx ends. Its error is a *config.ValueError if the configuration is invalid.
func RunAPI(ctx context.Context, cfg config.API, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s, err := process.OpenStore(ctx, cfg.Database, store.API)
	if err != nil {
		return err
	}
	if err := process.ReadFromStandbys(ctx, cfg.Standbys, s); err != nil {
		s.Close()
		return err
	}
	s.LimitStats(int(cfg.CurrentMemory))
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		return (&apiProcess{Process: p, cfg: cfg, store: s}).start(ctx)
	})
}

type apiProcess struct {
	*process.Process
	cfg     config.API
	store   *store.Store
	keyUses *httpedge.KeyUses
	tracer  *tracing.Tracer // nil without tracing
}

// start waits for a migrated database before it opens the public listener. The ops listener is open from the start.
func (a *apiProcess) start(ctx context.Context) error {
	a.OnClose("the database", process.Closing(a.store.Close))
	var err error
	if a.tracer, err = a.StartTracing(ctx, a.cfg.Tracing, "roomsensor-api"); err != nil {
		return err
	}
	a.Log.Info().Str("version", a.Version).Object("config", &a.cfg).Msg("starting the API")
	secret, err := a.awaitDatabase(ctx)
	if err != nil {
		return err
	}
	listener, err := a.Bind(ctx, "api", "api-addr", a.cfg.APIAddr)
	if err != nil {
		return err
	}
	a.keyUses = httpedge.NewKeyUses(a.store.RecordAPIKeyUses, time.Now, a.Log)
	handler, err := a.handler(secret, listener.Addr().String()) //nolint:contextcheck // Each request has its own.
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	startKeyUses(a.Process, a.keyUses) //nolint:contextcheck // It outlives the start.
	a.ServeHTTP("the API", api.NewServer(handler, a.Log), httpedge.IdleListener(listener))
	a.startBackground() //nolint:contextcheck // It outlives the start.
	a.Serving(time.Duration(a.cfg.DrainDelay))
	return nil
}

// startBackground starts what runs beside the requests until the process stops.
func (a *apiProcess) startBackground() {
	a.WatchStandbys(a.store)
	startPurge(a.Process, "old idempotency keys", a.store.PurgeIdempotency)
	startPurge(a.Process, "the requests of idle keys", a.store.PurgeRateWindows)
	startPurge(a.Process, "old entries of the audit log", a.purgeAudit)
	a.Background("metrics of keys", func(ctx context.Context) error {
		countExpiringKeys(ctx, a.Metrics, a.store, a.Log)
		return nil
	})
}

// awaitDatabase waits for the database and returns the secret of page cursors, which all replicas share.
func (a *apiProcess) awaitDatabase(ctx context.Context) (secret []byte, err error) {
	if err := awaitDatabase(ctx, a.Process, a.store, a.cfg.Database, a.cfg.OpsAddr, &a.cfg); err != nil {
		return nil, err
	}
	err = a.WhenReady(ctx, func() error {
		secret, err = a.store.CursorSecret(ctx)
		return err
	})
	return secret, err
}

// handler returns the API and the documentation. bound is the address of the public listener.
func (a *apiProcess) handler(secret []byte, bound string) (http.Handler, error) {
	site := httpedge.Site{
		PublicURL: a.cfg.PublicURL, DocsURL: a.cfg.DocsURL, LocalURL: a.cfg.Public(bound),
		Proxies: a.cfg.TrustedProxies.Prefixes,
	}
	options := docs.Options{PublicURL: a.cfg.Public(bound), DocsURL: a.cfg.Docs(bound)}
	if a.cfg.PublicURL == "" {
		options = docs.Options{Public: site.Public, DocsURL: a.cfg.DocsURL}
	}
	pages, err := docs.Handler(options)
	if err != nil {
		return nil, err
	}
	handler, err := api.New(api.Config{
		Site: site, Origins: a.cfg.CORSOrigins.List, CursorSecret: secret, KeyUses: a.keyUses, Docs: pages,
		Log: a.Log, LogSample: a.cfg.LogAccessSample, Metrics: a.Metrics, Tracer: a.tracer,
	}, a.store)
	if err != nil {
		return nil, fmt.Errorf("building the API: %w", err)
	}
	return handler, nil
}

// startKeyUses stores the uses of keys until the process has stopped what it starts later. Call it before the server of
// their requests starts, so that the last uses are stored too.
func startKeyUses(p *process.Process, uses *httpedge.KeyUses) {
	p.Background("recording the use of keys", func(ctx context.Context) error {
		uses.Run(ctx)
		return nil
	})
}

func (a *apiProcess) purgeAudit(ctx context.Context) (int64, error) {
	return a.store.PurgeAudit(ctx, time.Duration(a.cfg.AuditKeep))
}

// startPurge deletes rows every purgeInterval, until the process closes the database pool. what names them in the log.
func startPurge(p *process.Process, what string, purge func(context.Context) (int64, error)) {
	p.Background("the deletion of "+what, func(ctx context.Context) error {
		retry.Every(ctx, purgeInterval, func(ctx context.Context) {
			if _, err := purge(ctx); err != nil && ctx.Err() == nil {
				p.Log.Warn().Err(err).Msg("could not delete " + what + ", retrying")
			}
		})
		return nil
	})
}
