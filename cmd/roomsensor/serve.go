package main

import (
	"context"

	"github.com/rs/zerolog"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/service"
)

// processOptions returns the options of a process that logs JSON Lines to stderr.
func processOptions(t *cli.Terminal, level config.Log) process.Options {
	log := zerolog.New(t.Stderr).Level(level.Level()).With().Timestamp().Logger()
	return process.Options{Log: log, Version: t.Version}
}

type apiCmd struct{ config.API }

// Run serves the API until the command is interrupted.
func (c *apiCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return service.RunAPI(ctx, c.API, processOptions(t, c.Log))
}

type ingestCmd struct{ config.Ingest }

// Run receives and stores uploads until the command is interrupted.
func (c *ingestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return service.RunIngest(ctx, c.Ingest, processOptions(t, c.Log))
}

type dashboardCmd struct{ config.Dashboard }

// Run serves the dashboard until the command is interrupted.
func (c *dashboardCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return service.RunDashboard(ctx, c.Dashboard, processOptions(t, c.Log))
}

type healthcheckCmd struct{ config.Ops }

// Run prints the readiness of a process; it fails if the process is not ready.
func (c *healthcheckCmd) Run(ctx context.Context, t *cli.Terminal) error {
	readiness, err := process.Healthcheck(ctx, c.Ops)
	if err != nil {
		return err
	}
	return cli.PrintJSON(t.Stdout, readiness)
}
