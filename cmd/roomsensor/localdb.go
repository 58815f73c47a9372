package main

import (
	"context"

	"roomsensor/internal/localdb"
)

type localdbCmd struct {
	Start localdbStartCmd `cmd:"" help:"Start it, or find it running."`
	Stop  localdbStopCmd  `cmd:"" help:"Stop it; its data stay."`
	URL   localdbURLCmd   `cmd:"" help:"Show the URL of the one that runs." name:"url"`
}

// localDatabase is what the commands of localdb print.
type localDatabase struct {
	DatabaseURL *string `json:"database_url"` // null once it is stopped
}

// dataDir is where the data of a local TimescaleDB are.
type dataDir struct {
	DataDir string `help:"Directory of its data; by default localdb in /var/lib/roomsensor for root, else in ~/.local/state/roomsensor." placeholder:"DIR" setting:""`
}

type localdbStartCmd struct{ dataDir }

// Run carries the command out.
func (c *localdbStartCmd) Run(ctx context.Context, t *terminal) error {
	server, err := localdb.Start(ctx, localdb.Options{DataDir: c.DataDir, Progress: t.stderr})
	if err != nil {
		return err
	}
	return printJSON(t.stdout, localDatabase{&server.URL})
}

type localdbStopCmd struct{ dataDir }

// Run carries the command out.
func (c *localdbStopCmd) Run(ctx context.Context, t *terminal) error {
	if err := localdb.Stop(ctx, c.DataDir); err != nil {
		return err
	}
	return printJSON(t.stdout, localDatabase{})
}

type localdbURLCmd struct{ dataDir }

// Run carries the command out.
func (c *localdbURLCmd) Run(ctx context.Context, t *terminal) error {
	server, err := localdb.Find(ctx, c.DataDir)
	if err != nil {
		return err
	}
	return printJSON(t.stdout, localDatabase{&server.URL})
}
