// Package schema holds the migrations of the database and runs them. They are
// the same for both editions of TimescaleDB; what differs between the editions
// is made by a procedure that every run upwards ends with.
package schema

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS

//go:embed edition/ensure.sql
var ensureEdition string

const (
	// lockTimeout keeps a migration from queueing behind a long reader, with
	// every later request queueing behind the migration.
	lockTimeout = "2s"
	// retryPause and retryFor bound the tries when a lock was not had in time.
	retryPause = time.Second
	retryFor   = 5 * time.Minute

	lockNotAvailable = "55P03"
)

// Migration is one step and when it was applied; nil when it is pending.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt *time.Time
}

// Up applies every pending migration and brings what depends on the edition up
// to date. Several processes may call it at once: one works, the others wait.
func Up(ctx context.Context, databaseURL string, layout Layout) error {
	return withProvider(ctx, databaseURL, func(p *goose.Provider, pool *sql.DB) error {
		return retryLocked(ctx, func() error {
			if _, err := p.Up(ctx); err != nil {
				return fmt.Errorf("applying migrations: %w", err)
			}
			if _, err := pool.ExecContext(ctx, ensureEdition); err != nil {
				return fmt.Errorf("preparing the aggregate for this edition: %w", err)
			}
			return layout.ensure(ctx, pool)
		})
	})
}

// Down takes the newest applied migration back; it reports false when none is
// applied.
func Down(ctx context.Context, databaseURL string) (bool, error) {
	undone := true
	err := withProvider(ctx, databaseURL, func(p *goose.Provider, _ *sql.DB) error {
		return retryLocked(ctx, func() error {
			_, err := p.Down(ctx)
			if errors.Is(err, goose.ErrNoNextVersion) {
				undone = false
				return nil
			}
			if err != nil {
				return fmt.Errorf("taking a migration back: %w", err)
			}
			return nil
		})
	})
	return undone, err
}

// Status lists the migrations in order.
func Status(ctx context.Context, databaseURL string) ([]Migration, error) {
	var migrations []Migration
	err := withProvider(ctx, databaseURL, func(p *goose.Provider, _ *sql.DB) error {
		statuses, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("reading the state of migrations: %w", err)
		}
		for _, s := range statuses {
			m := Migration{Version: s.Source.Version, Name: s.Source.Path}
			if s.State == goose.StateApplied {
				m.AppliedAt = &s.AppliedAt
			}
			migrations = append(migrations, m)
		}
		return nil
	})
	return migrations, err
}

func withProvider(ctx context.Context, databaseURL string, run func(*goose.Provider, *sql.DB) error) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	config.RuntimeParams["lock_timeout"] = lockTimeout
	pool := stdlib.OpenDB(*config)
	defer func() { _ = pool.Close() }()
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, FS, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	return run(provider, pool)
}

// retryLocked tries again while another session holds a lock that is needed.
func retryLocked(ctx context.Context, run func() error) error {
	deadline := time.Now().Add(retryFor)
	for {
		err := run()
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != lockNotAvailable || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a lock: %w", ctx.Err())
		case <-time.After(retryPause):
		}
	}
}
