package main

import (
	"context"

	"github.com/rs/zerolog"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

// process is what a process gets from its terminal: a log of JSON lines.
func (t *terminal) process(level config.Log) app.Process {
	log := zerolog.New(t.stderr).Level(level.Level()).With().Timestamp().Logger()
	return app.Process{Log: log, Version: currentVersion()}
}

type apiCmd struct{ config.API }

// Run carries the command out.
func (c *apiCmd) Run(ctx context.Context, t *terminal) error {
	return app.RunAPI(ctx, c.API, t.process(c.Log))
}

type ingestCmd struct{ config.Ingest }

// Run carries the command out.
func (c *ingestCmd) Run(ctx context.Context, t *terminal) error {
	return app.RunIngest(ctx, c.Ingest, t.process(c.Log))
}
