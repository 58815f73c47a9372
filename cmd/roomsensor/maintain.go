package main

import (
	"context"
	"time"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type maintainCmd struct {
	config.Database
	After span `default:"14d" help:"Age from which chunks are put in order, longer than devices buffer readings." placeholder:"TIME"`
	Limit int  `default:"1000" help:"Most chunks to put in order."                                              placeholder:"N"`
}

// Run carries the command out.
func (c *maintainCmd) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 {
		return usagef("--limit must be a number above 0")
	}
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.OrderedChunk], error) {
		return o.Maintain(ctx, time.Duration(c.After), c.Limit)
	})
}
