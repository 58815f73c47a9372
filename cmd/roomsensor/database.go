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

type migrateUpCmd struct {
	config.Migration
	format
}

// Run applies all pending migrations.
func (c *migrateUpCmd) Run(ctx context.Context, t *terminal) error {
	state, err := admin.MigrateUp(ctx, c.Migration)
	return t.printMigrations(c.format, state, err)
}

type migrateDownCmd struct {
	onDatabase
	confirmation
	YesDeleteData bool `help:"Drop tables and columns of tables that contain rows. Implies --yes."`
}

// Run says what the newest migration takes with it, asks for a confirmation, and reverts the migration.
func (c *migrateDownCmd) Run(ctx context.Context, t *terminal) error {
	reversal, err := admin.PlanMigrateDown(ctx, c.Database)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(t.stderr, reversal.Description()) // A closed stderr is ignored.
	if len(reversal.NonEmpty) > 0 && !c.YesDeleteData {
		return reversal.Refusal()
	}
	c.Yes = c.Yes || c.YesDeleteData
	if err := t.confirm(ctx, c.confirmation); err != nil {
		return err
	}
	state, err := admin.MigrateDown(ctx, c.Database, reversal)
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
