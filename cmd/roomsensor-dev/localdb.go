package main

import (
	"context"

	"roomsensor/internal/cli"
	"roomsensor/internal/dev/postgres"
)

type localdbCmd struct {
	Start localdbStartCmd `cmd:"" help:"Start the database, or find the running one."`
	Stop  localdbStopCmd  `cmd:"" help:"Stop the database; its data is kept."`
	URL   localdbURLCmd   `cmd:"" help:"Show the URL of the running database." name:"url"`
}

// localDatabase is the output of the localdb commands.
type localDatabase struct {
	DatabaseURL *string `json:"database_url"` // null if it is stopped
}

// dataDir is the data directory of a local TimescaleDB.
type dataDir struct {
	cli.Format
	DataDir string `help:"Data directory." implied:"/var/lib/roomsensor/localdb for root, otherwise ~/.local/state/roomsensor/localdb" placeholder:"DIR" setting:""`
}

type localdbStartCmd struct{ dataDir }

// Run starts the database and prints its URL.
func (c *localdbStartCmd) Run(ctx context.Context, t *cli.Terminal) error {
	server, err := postgres.Start(ctx, postgres.Options{DataDir: c.DataDir, Progress: t.Stderr, Confirm: t.Asker()})
	if err != nil {
		return err
	}
	return t.Print(c.Format, localDatabase{&server.URL})
}

type localdbStopCmd struct{ dataDir }

// Run stops the database.
func (c *localdbStopCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := postgres.Stop(ctx, c.DataDir); err != nil {
		return err
	}
	return t.Print(c.Format, localDatabase{})
}

type localdbURLCmd struct{ dataDir }

// Run prints the URL of the running database.
func (c *localdbURLCmd) Run(ctx context.Context, t *cli.Terminal) error {
	server, err := postgres.Find(ctx, c.DataDir)
	if err != nil {
		return err
	}
	return t.Print(c.Format, localDatabase{&server.URL})
}
