package main

import (
	"context"
	"fmt"
	"time"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

// onDatabase are the flags of a command that works on the database and prints its result.
type onDatabase struct {
	config.Database
	cli.Format
}

// operate calls an operator's command on the database and prints the object that it returns.
func operate(
	ctx context.Context, t *cli.Terminal, c onDatabase, do func(o *admin.Operator) (object any, err error),
) error {
	operator, err := admin.Open(ctx, c.Database)
	if err != nil {
		return err
	}
	defer operator.Close()
	object, err := do(operator)
	if err != nil {
		return err
	}
	return t.Print(c.Format, object)
}

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply all pending migrations. Creates the extensions in an empty database."`
	Status migrateStatusCmd `cmd:"" help:"Show the migrations and the edition of TimescaleDB."`
}

type migrateUpCmd struct {
	config.Migration
	cli.Format
}

// Run applies all pending migrations.
func (c *migrateUpCmd) Run(ctx context.Context, t *cli.Terminal) error {
	state, err := admin.MigrateUp(ctx, c.Migration)
	return printMigrations(t, c.Format, state, err)
}

type migrateStatusCmd struct{ onDatabase }

// Run prints the state of the database.
func (c *migrateStatusCmd) Run(ctx context.Context, t *cli.Terminal) error {
	state, err := admin.MigrationStatus(ctx, c.Database)
	return printMigrations(t, c.Format, state, err)
}

func printMigrations(t *cli.Terminal, f cli.Format, state admin.Migrations, err error) error {
	if err != nil {
		return err
	}
	if state.Warning != "" {
		_, _ = fmt.Fprintln(t.Stderr, "Warning: "+state.Warning) // A closed stderr is ignored.
	}
	return t.Print(f, state)
}

type maintainCmd struct {
	onDatabase
	After   config.Duration `default:"14d" help:"Age at which chunks are rewritten; longer than devices buffer readings." placeholder:"DURATION"`
	Limit   int             `default:"1000" help:"Maximum number of chunks to rewrite." placeholder:"N"`
	Timeout config.Duration `default:"10m" help:"Longest time for which a chunk may be locked. Chunks whose rewrite would take longer are skipped." placeholder:"DURATION"`
}

// Run rewrites chunks.
func (c *maintainCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Limit < 1 {
		return cli.Usagef("--limit must be a whole number above 0.")
	}
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.Maintain(ctx, time.Duration(c.After), time.Duration(c.Timeout), c.Limit)
	})
}
