package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/dashboard"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/password"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/tracing"
	"roomsensor/internal/worker"
)

// RunDashboard runs a process that serves the dashboard until ctx ends. Its error is a *config.ValueError if the
// configuration is invalid.
func RunDashboard(ctx context.Context, cfg config.Dashboard, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	refused, err := readPasswords(cfg.PasswordList)
	if err != nil {
		return &config.ValueError{Flag: "password-list", Reason: "must name a file with a password per line: " + err.Error()}
	}
	s, err := process.OpenStore(ctx, cfg.Database, store.Dashboard)
	if err != nil {
		return err
	}
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		return (&dashboardProcess{Process: p, cfg: cfg, store: s, refused: refused}).start(ctx)
	})
}

// readPasswords reads the passwords that nobody may choose from a file; none if path is empty.
func readPasswords(path string) (password.List, error) {
	if path == "" {
		return password.List{}, nil
	}
	file, err := os.Open(path) //nolint:gosec // The operator names it.
	if err != nil {
		return password.List{}, fmt.Errorf("opening the list of passwords: %w", err)
	}
	defer func() { _ = file.Close() }()
	return password.ReadList(file, roomsensor.MinPassword)
}

type dashboardProcess struct {
	*process.Process
	cfg     config.Dashboard
	store   *store.Store
	refused password.List
	tracer  *tracing.Tracer // nil without tracing
}

// start waits for a migrated database before it opens the public listener. The ops listener is open from the start.
func (d *dashboardProcess) start(ctx context.Context) error {
	d.OnClose("the database", process.Closing(d.store.Close))
	var err error
	if d.tracer, err = d.StartTracing(ctx, d.cfg.Tracing, "roomsensor-dashboard"); err != nil {
		return err
	}
	d.Log.Info().Str("version", d.Version).Object("config", &d.cfg).Msg("starting the dashboard")
	if err := awaitDatabase(ctx, d.Process, d.store, d.cfg.Database, d.cfg.OpsAddr, &d.cfg); err != nil {
		return err
	}
	listener, err := d.Bind(ctx, "dashboard", "dashboard-addr", d.cfg.DashboardAddr)
	if err != nil {
		return err
	}
	handler, err := d.handler(listener.Addr().String()) //nolint:contextcheck // Each request has its own context.
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	d.ServeHTTP("the dashboard", dashboard.NewServer(handler, d.Log), httpedge.IdleListener(listener))
	startPurge(d.Process, "old sessions and sign-ins", d.store.PurgeSignIns) //nolint:contextcheck // Outlives the start.
	d.Serving(time.Duration(d.cfg.DrainDelay))
	return nil
}

// awaitDatabase opens the ops listener, waits until a process can use the database, and logs what it is.
func awaitDatabase(
	ctx context.Context, p *process.Process, s *store.Store, database config.Database, ops string,
	cfg zerolog.LogObjectMarshaler,
) error {
	p.NeedDatabase(database, s)
	p.ObservePools(s)
	if err := p.StartOps(ctx, ops, cfg); err != nil {
		return err
	}
	return p.WhenReady(ctx, func() error {
		found, err := s.Database(ctx)
		if err == nil {
			p.LogDatabase(found, cfg)
		}
		return err
	})
}

// handler returns the dashboard. bound is the address of the public listener.
func (d *dashboardProcess) handler(bound string) (http.Handler, error) {
	handler, err := dashboard.New(dashboard.Config{
		Config: page.Config{
			URL: d.cfg.URL(bound), Clients: httpedge.Site{Proxies: d.cfg.TrustedProxies.Prefixes}, Sessions: d.store.Sessions(),
			Log: d.Log, LogSample: d.cfg.LogAccessSample, Metrics: d.Metrics, Tracer: d.tracer,
		},
		PublicURL: d.cfg.API(), SourceURL: d.cfg.SourceURL, Replay: d.replay, RefusedPasswords: d.refused,
	}, d.store)
	if err != nil {
		return nil, fmt.Errorf("building the dashboard: %w", err)
	}
	return handler, nil
}

// replay stores a reject again in this process, within the limits of uploads.
func (d *dashboardProcess) replay(ctx context.Context, reject roomsensor.Reject) ([]roomsensor.Reject, error) {
	return worker.ReplayForTeam(ctx, d.store, reject)
}
