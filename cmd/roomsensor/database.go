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
	Status migrateStatusCmd `cmd:"" help:"Show the migrations and the edition of TimescaleDB."`
}

type migrateUpCmd struct {
	config.Migration
	format
}

// Run applies all pending migrations.
func (c *migrateUpCmd) Run(ctx context.Context, t *terminal) error {
	state, err := admin.MigrateUp(ctx, c.Migration)
	return t.printMigrations(c.format, state, err)
}

type migrateStatusCmd struct{ onDatabase }

// Run prints the state of the database.
func (c *migrateStatusCmd) Run(ctx context.Context, t *terminal) error {
	state, err := admin.MigrationStatus(ctx, c.Database)
	return t.printMigrations(c.format, state, err)
}

func (t *terminal) printMigrations(f format, state admin.Migrations, err error) error {
	if err != nil {
		return err
	}
	if state.Warning != "" {
		_, _ = fmt.Fprintln(t.stderr, "Warning: "+state.Warning) // A closed stderr is ignored.
	}
	return t.print(f, state)
}

type maintainCmd struct {
	onDatabase
	After   config.Duration `default:"14d" help:"Age at which chunks are rewritten; longer than devices buffer readings." placeholder:"DURATION"`
	Limit   int             `default:"1000" help:"Maximum number of chunks to rewrite." placeholder:"N"`
	Timeout config.Duration `default:"10m" help:"Longest time for which a chunk may be locked. Chunks whose rewrite would take longer are skipped." placeholder:"DURATION"`
}

// Run rewrites chunks.
func (c *maintainCmd) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 {
		return usagef("--limit must be a whole number above 0.")
	}
	return t.operate(ctx, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.Maintain(ctx, time.Duration(c.After), time.Duration(c.Timeout), c.Limit)
	})
}
