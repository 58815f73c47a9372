package service

import (
	"context"
	"errors"
	"os"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/mqtt"
	"roomsensor/internal/process"
	"roomsensor/internal/store"
)

// RunMQTT runs a process that passes messages of an MQTT broker to sources until ctx ends. Its error is a
// *config.ValueError if the configuration is invalid.
func RunMQTT(ctx context.Context, cfg config.MQTT, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Replica == "" {
		name, err := os.Hostname()
		if err != nil {
			return err //nolint:wrapcheck // It says what failed.
		}
		cfg.Replica = config.TopicLevel(name)
	}
	s, err := process.OpenStore(ctx, cfg.Database, store.Ingest)
	if err != nil {
		return err
	}
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error { return startMQTT(ctx, p, &cfg, s) })
}

// startMQTT needs the database for the sources only, so that messages continue while it is unavailable.
func startMQTT(ctx context.Context, p *process.Process, cfg *config.MQTT, s *store.Store) error {
	p.OnClose("the database", process.Closing(s.Close))
	p.Log.Info().Str("version", p.Version).Object("config", cfg).Msg("starting MQTT")
	q, conn, err := process.ConnectQueue(cfg.Queue, config.Defaults[config.Stream](), "roomsensor mqtt", p.Log)
	if err != nil {
		return err
	}
	p.OnClose("the queue", process.Closing(conn.Close))
	p.ObservePools(s)
	p.NeedQueue(cfg.Queue, q)
	version := byte(5)
	if cfg.Protocol == "3" {
		version = 4
	}
	b := mqtt.New(mqtt.Config{
		Broker: cfg.Broker, Subscriptions: cfg.Subscribe, Version: version,
		Share: string(cfg.Share), Replica: string(cfg.Replica), Retained: cfg.Retained,
		Queue: q, Database: s, Log: p.Log, Metrics: p.Metrics,
	})
	p.Health.Need("sources", func(ctx context.Context) error {
		select {
		case <-b.SourcesKnown():
			return nil
		case <-ctx.Done():
			return &process.UnavailableError{Reason: "were not read yet: the database is unavailable or not migrated"}
		}
	})
	p.Health.Need("broker", func(context.Context) error { return brokerReason(&cfg.Broker, b.Problem()) })
	if err := p.StartOps(ctx, cfg.OpsAddr, cfg); err != nil {
		return err
	}
	//nolint:contextcheck // It outlives the start.
	p.Background("the sessions at the broker", func(ctx context.Context) error {
		b.Run(ctx)
		return nil
	})
	p.Serving(time.Duration(cfg.DrainDelay))
	return nil
}

// brokerReason returns why a broker cannot be used, for /readyz.
func brokerReason(broker *config.Broker, problem error) error {
	if problem == nil {
		return nil
	}
	reason := process.NoAnswer(broker.Address())
	refused, ok := errors.AsType[*mqtt.RefusedError](problem)
	switch {
	case errors.Is(problem, mqtt.ErrNotTried):
		reason = problem.Error()
	case ok:
		reason = refused.Error()
	case process.Unverified(problem):
		reason = "presents a certificate that cannot be verified: check that --mqtt-ca (MQTT_CA) is the file of its CA, " +
			"and that the certificate names the host in --mqtt-url (MQTT_URL)"
	}
	return &process.UnavailableError{Reason: reason, Cause: problem}
}
