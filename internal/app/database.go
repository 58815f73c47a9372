package app

import (
	"context"
	"sync/atomic"

	"roomsensor/internal/config"
	"roomsensor/internal/ops"
	"roomsensor/internal/store"
	"roomsensor/schema"
)

// needDatabase makes a process wait for a migrated database and lose its
// readiness with it.
func needDatabase(health *ops.Health, cfg config.Database, s *store.Store) {
	var migrated atomic.Bool
	health.Need("database", func(ctx context.Context) error {
		if !migrated.Load() {
			pending, err := schema.Pending(ctx, cfg.DatabaseURL)
			switch {
			case err != nil:
				return &ops.UnavailableError{Reason: "does not answer", Cause: err}
			case pending:
				return &ops.UnavailableError{Reason: "is not migrated to this version: run roomsensor migrate up"}
			}
			migrated.Store(true)
		}
		if err := s.Ping(ctx); err != nil {
			return &ops.UnavailableError{Reason: "does not answer", Cause: err}
		}
		return nil
	})
}
