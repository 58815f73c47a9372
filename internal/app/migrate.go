package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/schema"
)

// Migrations is the state of a database: its edition, and every migration.
type Migrations struct {
	Edition     *string     `json:"edition"` // apache or community; null before the first migration
	TimescaleDB *string     `json:"timescaledb_version"`
	UpToDate    bool        `json:"up_to_date"`
	Readings    *Layout     `json:"readings"` // null until it is up to date
	Data        []Migration `json:"data"`
}

// Migration is one step and when it was applied; null is pending.
type Migration struct {
	Version   int64   `json:"version"`
	Name      string  `json:"name"`
	AppliedAt *string `json:"applied_at"`
}

// MigrateUp applies every pending migration. It is what deployments run first,
// beside a database that starts as well, so it asks more than once.
func MigrateUp(ctx context.Context, cfg config.Migration) (Migrations, error) {
	if err := cfg.Layout.Validate(); err != nil {
		return Migrations{}, err
	}
	if err := checkDatabase(ctx, cfg.Database, patiently); err != nil {
		return Migrations{}, err
	}
	layout := schema.Layout{ColumnstoreAfter: cfg.Columnstore(), DropAfter: cfg.Drop()}
	if err := schema.Up(ctx, cfg.DatabaseURL, layout); err != nil {
		return Migrations{}, interrupted(ctx, refusef("The database could not be migrated. "+
			"Its server must preload TimescaleDB 2.19 or later, "+
			"and the role must be allowed to create extensions and tables: %v", err))
	}
	return MigrationStatus(ctx, cfg.Database)
}

// MigrateDown takes the newest migration back.
func MigrateDown(ctx context.Context, cfg config.Database) (Migrations, error) {
	if err := checkDatabase(ctx, cfg, once); err != nil {
		return Migrations{}, err
	}
	undone, err := schema.Down(ctx, cfg.DatabaseURL)
	if err != nil {
		return Migrations{}, interrupted(ctx, err)
	}
	if !undone {
		return Migrations{}, refusef("No migration is applied, so there is none to take back.")
	}
	return MigrationStatus(ctx, cfg)
}

// MigrationStatus looks at the migrations and at the edition.
func MigrationStatus(ctx context.Context, cfg config.Database) (Migrations, error) {
	if err := checkDatabase(ctx, cfg, once); err != nil {
		return Migrations{}, err
	}
	steps, err := schema.Status(ctx, cfg.DatabaseURL)
	if err != nil {
		return Migrations{}, interrupted(ctx, err)
	}
	state := Migrations{UpToDate: true, Data: make([]Migration, len(steps))}
	for i, step := range steps {
		state.Data[i] = Migration{step.Version, step.Name, formatted(step.AppliedAt)}
		state.UpToDate = state.UpToDate && step.AppliedAt != nil
	}
	return state, state.addEdition(ctx, cfg)
}

func (m *Migrations) addEdition(ctx context.Context, cfg config.Database) error {
	s, err := openStore(ctx, cfg, store.Operator)
	if err != nil {
		return err
	}
	defer s.Close()
	database, err := s.Database(ctx)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return nil // The extension comes with the first migration.
	}
	if err != nil {
		return fmt.Errorf("looking at the edition: %w", err)
	}
	m.Edition, m.TimescaleDB = &database.Edition, &database.Version
	if !m.UpToDate {
		return nil
	}
	layout, err := s.Layout(ctx)
	if err != nil {
		return fmt.Errorf("looking at the layout: %w", err)
	}
	m.Readings = newLayout(layout, time.Now())
	return nil
}

// checkDatabase makes sure that the database answers, so that a URL that leads
// nowhere is told from a migration that failed.
func checkDatabase(
	ctx context.Context, cfg config.Database, ask func(context.Context, func() error) error,
) error {
	s, err := openStore(ctx, cfg, store.Operator)
	if err != nil {
		return err
	}
	defer s.Close()
	return ask(ctx, func() error {
		if err := s.Ping(ctx); err != nil {
			return explainDatabase(ctx, cfg.DatabaseURL, err)
		}
		return nil
	})
}

func once(_ context.Context, try func() error) error { return try() }
