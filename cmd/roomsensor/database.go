package main

import (
	"context"
	"fmt"
	"time"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply all pending migrations. Creates the extensions in an empty database."`
	Down   migrateDownCmd   `cmd:"" help:"Revert the newest migration."`
	Status migrateStatusCmd `cmd:"" help:"Show the migrations and the edition of TimescaleDB."`
}

type migrateUpCmd struct{ config.Migration }

// Run applies all pending migrations.
func (c *migrateUpCmd) Run(ctx context.Context, t *terminal) error {
	return t.printMigrations(admin.MigrateUp(ctx, c.Migration))
}

type migrateDownCmd struct{ config.Database }

// Run reverts the newest migration.
func (c *migrateDownCmd) Run(ctx context.Context, t *terminal) error {
	return t.printMigrations(admin.MigrateDown(ctx, c.Database))
}

type migrateStatusCmd struct{ config.Database }

// Run prints the state of the database.
func (c *migrateStatusCmd) Run(ctx context.Context, t *terminal) error {
	return t.printMigrations(admin.MigrationStatus(ctx, c.Database))
}

func (t *terminal) printMigrations(state admin.Migrations, err error) error {
	if err != nil {
		return err
	}
	if state.Warning != "" {
		_, _ = fmt.Fprintln(t.stderr, "Warning: "+state.Warning) // A closed stderr is ignored.
	}
	return printJSON(t.stdout, state)
}

type maintainCmd struct {
	config.Database
	After   config.Duration `default:"14d" help:"Age at which chunks are rewritten; longer than devices buffer readings." placeholder:"TIME"`
	Limit   int             `default:"1000" help:"Maximum number of chunks to rewrite." placeholder:"N"`
	Timeout config.Duration `default:"10m" help:"Longest time for which a chunk may be locked. Chunks whose rewrite would take longer are skipped." placeholder:"TIME"`
}

// Run rewrites chunks.
func (c *maintainCmd) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 {
		return usagef("--limit must be a whole number above 0.")
	}
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.Maintain(ctx, time.Duration(c.After), time.Duration(c.Timeout), c.Limit)
	})
}
