package main

import (
	"context"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type healthcheckCmd struct{ config.Ops }

// Run carries the command out.
func (c *healthcheckCmd) Run(ctx context.Context, t *terminal) error {
	said, err := app.Healthcheck(ctx, c.Ops)
	if err != nil {
		return err
	}
	return printJSON(t.stdout, said)
}
