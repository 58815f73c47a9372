package main

import (
	"context"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply what is pending; creates the extensions in an empty database."`
	Down   migrateDownCmd   `cmd:"" help:"Take the newest migration back."`
	Status migrateStatusCmd `cmd:"" help:"Show the migrations and the edition of TimescaleDB."`
}

type migrateUpCmd struct{ config.Migration }

// Run carries the command out.
func (c *migrateUpCmd) Run(ctx context.Context, t *terminal) error {
	return printMigrations(ctx, t, c.Migration, app.MigrateUp)
}

type migrateDownCmd struct{ config.Database }

// Run carries the command out.
func (c *migrateDownCmd) Run(ctx context.Context, t *terminal) error {
	return printMigrations(ctx, t, c.Database, app.MigrateDown)
}

type migrateStatusCmd struct{ config.Database }

// Run carries the command out.
func (c *migrateStatusCmd) Run(ctx context.Context, t *terminal) error {
	return printMigrations(ctx, t, c.Database, app.MigrationStatus)
}

// printMigrations prints the state of the database after a command.
func printMigrations[Config any](
	ctx context.Context, t *terminal, cfg Config, do func(context.Context, Config) (app.Migrations, error),
) error {
	state, err := do(ctx, cfg)
	if err != nil {
		return err
	}
	return printJSON(t.stdout, state)
}
