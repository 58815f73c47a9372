package main

import (
	"context"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type streamCmd struct {
	Replay streamReplayCmd `cmd:"" help:"Give what the stream holds to the workers again, after a restore of the database."`
}

type streamReplayCmd struct {
	config.Queue
	config.Stream
	Since *instant `help:"Only what arrived at this time or later; everything by default." placeholder:"TIME"`
}

// Run carries the command out.
func (c *streamReplayCmd) Run(ctx context.Context, t *terminal) error {
	replay, err := app.ReplayStream(ctx, c.Queue, c.Stream, c.Since.optional())
	if err != nil {
		return err
	}
	return printJSON(t.stdout, replay)
}
