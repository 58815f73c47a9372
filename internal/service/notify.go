package service

import (
	"context"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/notify"
	"roomsensor/internal/process"
	"roomsensor/internal/store"
)

// RunNotify runs a process that evaluates alerts and sends mails until ctx ends. Several may run at the same time. Its
// error is a *config.ValueError if the configuration is invalid.
func RunNotify(ctx context.Context, cfg config.Notify, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	sender, err := notify.NewSender(&cfg.Mail)
	if err != nil {
		return err
	}
	s, err := process.OpenStore(ctx, cfg.Database, store.Notify)
	if err != nil {
		return err
	}
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		return startNotify(ctx, p, &cfg, s, sender)
	})
}

// startNotify waits for a migrated database before the first round.
func startNotify(
	ctx context.Context, p *process.Process, cfg *config.Notify, s *store.Store, sender notify.Sender,
) error {
	p.OnClose("the database", process.Closing(s.Close))
	p.Log.Info().Str("version", p.Version).Object("config", cfg).Msg("starting to notify")
	if err := awaitDatabase(ctx, p, s, cfg.Database, cfg.OpsAddr, cfg); err != nil {
		return err
	}
	n := notify.New(notify.Config{URL: cfg.URL(""), Sender: sender, Log: p.Log, Metrics: p.Metrics}, s)
	p.Background("the evaluation of alerts", n.Evaluate) //nolint:contextcheck // It outlives the start.
	if sender != nil {
		p.Background("the outbox", n.Send) //nolint:contextcheck // It outlives the start.
	}
	startPurge(p, "old alerts", s.PurgeAlerts) //nolint:contextcheck // It outlives the start.
	p.Serving(time.Duration(cfg.DrainDelay))
	return nil
}
