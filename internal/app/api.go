package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/docs"
	"roomsensor/internal/api"
	"roomsensor/internal/config"
	"roomsensor/internal/ops"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// RunAPI runs a process that answers clients, until ctx ends. The error is a
// *config.ValueError where the configuration cannot be used.
func RunAPI(ctx context.Context, cfg config.API, p Process) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s, err := openStore(ctx, cfg.Database, store.API)
	if err != nil {
		return err
	}
	a := &apiProcess{
		Process: p, cfg: cfg, store: s,
		health: ops.NewHealth(p.Log), metrics: newRegistry(),
	}
	return supervise(ctx, p.Log, a.start)
}

type apiProcess struct {
	Process
	cfg     config.API
	store   *store.Store
	health  *ops.Health
	metrics *prometheus.Registry
}

func (a *apiProcess) start(ctx context.Context, l *lifecycle) error {
	l.push("the database", closing(a.store.Close))
	a.Log.Info().Str("version", a.Version).Object("config", &a.cfg).Msg("starting the API")
	needDatabase(a.health, a.cfg.Database, a.store)
	if err := a.startOps(ctx, l, a.cfg.OpsAddr, a.health, a.metrics); err != nil {
		return err
	}
	secret, err := a.awaitDatabase(ctx)
	if err != nil {
		return err
	}
	listener, err := a.listen(ctx, "api", a.cfg.APIAddr)
	if err != nil {
		return err
	}
	handler, err := a.handler(secret, listener.Addr().String()) //nolint:contextcheck // Requests bring theirs.
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	serveHTTP(l, "the API", api.NewServer(a.cfg.APIAddr, handler, a.Log), api.Paced(listener))
	l.run("idempotency keys", a.purgeIdempotency)
	a.serving(l, a.health)
	return nil
}

// awaitDatabase waits for the database and reads what all replicas share.
func (a *apiProcess) awaitDatabase(ctx context.Context) (secret []byte, err error) {
	err = a.whenThere(ctx, a.health, func() error {
		database, err := a.store.Database(ctx)
		if err != nil {
			return err
		}
		a.Log.Info().Str("version", a.Version).Str("edition", database.Edition).
			Str("timescaledb", database.Version).Object("config", &a.cfg).Msg("found the database")
		secret, err = a.store.CursorSecret(ctx)
		return err
	})
	return secret, err
}

func (a *apiProcess) handler(secret []byte, bound string) (http.Handler, error) {
	docsURL := a.cfg.Docs(bound)
	pages, err := docs.Handler(docs.Options{PublicURL: a.cfg.Public(bound), DocsURL: docsURL})
	if err != nil {
		return nil, err
	}
	handler, err := api.New(api.Config{
		DocsURL: docsURL, CursorSecret: secret, Docs: pages, Log: a.Log, Metrics: a.metrics,
	}, backend{a.store})
	if err != nil {
		return nil, fmt.Errorf("building the API: %w", err)
	}
	return handler, nil
}

// purgeEvery is how often entries of 24 hours and more are removed. They count
// for nothing before that.
const purgeEvery = 10 * time.Minute

func (a *apiProcess) purgeIdempotency(ctx context.Context) error {
	return every(ctx, purgeEvery, func() {
		if _, err := a.store.PurgeIdempotency(ctx); err != nil && ctx.Err() == nil {
			a.Log.Warn().Err(err).Msg("could not remove old idempotency keys, trying again later")
		}
	})
}

// backend is the store as the API wants it.
type backend struct{ *store.Store }

// OpenExport opens an export on the pool of its own.
func (b backend) OpenExport(ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery) (api.Export, error) {
	export, err := b.Export(ctx, teamID, q)
	if err != nil {
		return nil, err
	}
	return export, nil
}
