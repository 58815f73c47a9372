package main

import (
	"context"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type teamCmd struct {
	Create teamCreateCmd `cmd:"" help:"Make a team."`
	List   teamListCmd   `cmd:"" help:"List every team."`
}

type teamCreateCmd struct {
	config.Database
	Name name `help:"Name of the team." placeholder:"NAME" required:""`
}

// Run carries the command out.
func (c *teamCreateCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Team, error) {
		return o.CreateTeam(ctx, string(c.Name))
	})
}

type teamListCmd struct{ config.Database }

// Run carries the command out.
func (c *teamListCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.Team], error) {
		return o.Teams(ctx)
	})
}
