package schema

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// Pending reports whether a migration waits to be applied. It changes nothing
// and waits for no lock, so that a process may ask while another one migrates.
func Pending(ctx context.Context, databaseURL string) (pending bool, err error) {
	err = withProvider(ctx, databaseURL, func(p *goose.Provider, _ *sql.DB) error {
		if pending, err = p.HasPending(ctx); err != nil {
			return fmt.Errorf("looking for pending migrations: %w", err)
		}
		return nil
	})
	return pending, err //nolint:wrapcheck // withProvider says what it was doing.
}
