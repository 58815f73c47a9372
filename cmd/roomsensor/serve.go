package main

import (
	"context"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/service"
)

// process returns the options of a process that logs JSON Lines to stderr.
func (t *terminal) process(level config.Log) process.Options {
	log := zerolog.New(t.stderr).Level(level.Level()).With().Timestamp().Logger()
	return process.Options{Log: log, Version: currentVersion()}
}

type apiCmd struct{ config.API }

// Run serves the API until the command is interrupted.
func (c *apiCmd) Run(ctx context.Context, t *terminal) error {
	return service.RunAPI(ctx, c.API, t.process(c.Log))
}

type ingestCmd struct{ config.Ingest }

// Run receives and stores uploads until the command is interrupted.
func (c *ingestCmd) Run(ctx context.Context, t *terminal) error {
	return service.RunIngest(ctx, c.Ingest, t.process(c.Log))
}

type dashboardCmd struct{ config.Dashboard }

// Run serves the dashboard until the command is interrupted.
func (c *dashboardCmd) Run(ctx context.Context, t *terminal) error {
	return service.RunDashboard(ctx, c.Dashboard, t.process(c.Log))
}

type healthcheckCmd struct{ config.Ops }

// Run prints the readiness of a process; it fails if the process is not ready.
func (c *healthcheckCmd) Run(ctx context.Context, t *terminal) error {
	readiness, err := process.Healthcheck(ctx, c.Ops)
	if err != nil {
		return err
	}
	return printJSON(t.stdout, readiness)
}
