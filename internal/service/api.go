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
)

// purgeInterval is how often two kinds of rows are deleted that have no effect any more: idempotency keys older than 24
// hours, and the counted requests of API keys that had none for 10 minutes.
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
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		return (&apiProcess{Process: p, cfg: cfg, store: s}).start(ctx)
	})
}

type apiProcess struct {
	*process.Process
	cfg   config.API
	store *store.Store
}

// start waits for a migrated database before it opens the public listener. The ops listener is open from the start.
func (a *apiProcess) start(ctx context.Context) error {
	a.OnClose("the database", process.Closing(a.store.Close))
	a.Log.Info().Str("version", a.Version).Object("config", &a.cfg).Msg("starting the API")
	a.NeedDatabase(a.cfg.Database, a.store)
	if err := a.StartOps(ctx, a.cfg.OpsAddr); err != nil {
		return err
	}
	secret, err := a.awaitDatabase(ctx)
	if err != nil {
		return err
	}
	listener, err := a.Bind(ctx, "api", "api-addr", a.cfg.APIAddr)
	if err != nil {
		return err
	}
	handler, err := a.handler(secret, listener.Addr().String()) //nolint:contextcheck // Each request has its own.
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ServeHTTP("the API", api.NewServer(handler, a.Log), httpedge.IdleListener(listener))
	a.startPurge("old idempotency keys", a.store.PurgeIdempotency)      //nolint:contextcheck // It outlives the start.
	a.startPurge("the requests of idle keys", a.store.PurgeRateWindows) //nolint:contextcheck // It outlives the start.
	a.Serving(time.Duration(a.cfg.DrainDelay))
	return nil
}

// awaitDatabase waits for the database and returns the secret of page cursors, which all replicas share.
func (a *apiProcess) awaitDatabase(ctx context.Context) (secret []byte, err error) {
	err = a.WhenReady(ctx, func() error {
		database, err := a.store.Database(ctx)
		if err != nil {
			return err
		}
		a.LogDatabase(database, &a.cfg)
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
		Site: site, Origins: a.cfg.CORSOrigins.List, CursorSecret: secret, Docs: pages, Log: a.Log, Metrics: a.Metrics,
	}, a.store)
	if err != nil {
		return nil, fmt.Errorf("building the API: %w", err)
	}
	return handler, nil
}

// startPurge deletes rows every purgeInterval, until the process closes the database pool. what names them in the log.
func (a *apiProcess) startPurge(what string, purge func(context.Context) (int64, error)) {
	a.Background("the deletion of "+what, func(ctx context.Context) error {
		retry.Every(ctx, purgeInterval, func(ctx context.Context) {
			if _, err := purge(ctx); err != nil && ctx.Err() == nil {
				a.Log.Warn().Err(err).Msg("could not delete " + what + ", retrying")
			}
		})
		return nil
	})
}
