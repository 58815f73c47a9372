package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"

	"roomsensor/internal/cli"
	"roomsensor/internal/clientcmd"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/service"
)

// serve runs a process that logs JSON Lines to stderr. It ignores SIGHUP, which would end it at once by default, in the
// middle of its work: a process reads files with secrets and certificates when it connects.
func serve[Config any](
	ctx context.Context, t *cli.Terminal, cfg Config, configured config.Log,
	run func(context.Context, Config, process.Options) error,
) error {
	level := process.NewLogLevel(configured)
	log := zerolog.New(t.Stderr).Sample(level).With().Timestamp().Logger()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for range hangups {
			log.Warn().Msg("ignored SIGHUP; SIGTERM stops the process, which reads files of secrets when it connects")
		}
	}()
	defer func() {
		signal.Stop(hangups)
		close(hangups)
		<-logged
	}()
	return run(ctx, cfg, process.Options{Log: log, LogLevel: level, Version: t.Version})
}

type apiCmd struct{ config.API }

// Run serves the API until the command is interrupted.
func (c *apiCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return serve(ctx, t, c.API, c.Log, service.RunAPI)
}

type ingestCmd struct{ config.Ingest }

// Run receives and stores uploads until the command is interrupted.
func (c *ingestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return serve(ctx, t, c.Ingest, c.Log, service.RunIngest)
}

type dashboardCmd struct{ config.Dashboard }

// Run serves the dashboard until the command is interrupted.
func (c *dashboardCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return serve(ctx, t, c.Dashboard, c.Log, service.RunDashboard)
}

type notifyCmd struct{ config.Notify }

// Run evaluates alerts and sends mails until the command is interrupted.
func (c *notifyCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return serve(ctx, t, c.Notify, c.Log, service.RunNotify)
}

type mqttCmd struct{ config.MQTT }

// Run passes messages of an MQTT broker to sources until the command is interrupted.
func (c *mqttCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return serve(ctx, t, c.MQTT, c.Log, service.RunMQTT)
}

type probeCmd struct {
	config.Probe
	Once bool `help:"Check once, print the result, and fail if it is not good."`
}

// Help returns the part of --help about what a check is.
func (*probeCmd) Help() string {
	return `A check reads the newest readings, uploads a reading, and waits until the change feed has it. The team of ` +
		`both keys must have one device only: use one for the probe alone.`
}

// Run checks the service until the command is interrupted, or once.
func (c *probeCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Once {
		return clientcmd.ProbeOnce(ctx, t, &c.Probe)
	}
	return serve(ctx, t, c.Probe, c.Log, clientcmd.RunProbe)
}

type healthcheckCmd struct{ config.Ops }

// Run prints the readiness of a process; it fails if the process is not ready.
func (c *healthcheckCmd) Run(ctx context.Context, t *cli.Terminal) error {
	readiness, err := process.Healthcheck(ctx, c.Ops)
	if err != nil {
		return err
	}
	return cli.PrintLine(t.Stdout, readiness)
}
