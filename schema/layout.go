package schema

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"
)

//go:embed edition/layout.sql
var ensureLayout string

// Layout says how old readings lie on disk, where the edition of TimescaleDB
// offers a choice. Zero is never.
type Layout struct {
	// ColumnstoreAfter is the age at which a chunk becomes columns, longer than
	// any device buffers what it measured.
	ColumnstoreAfter time.Duration
	// DropAfter is the age at which a chunk goes.
	DropAfter time.Duration
}

func (l Layout) ensure(ctx context.Context, pool *sql.DB) error {
	if _, err := pool.ExecContext(ctx, ensureLayout, seconds(l.ColumnstoreAfter), seconds(l.DropAfter)); err != nil {
		return fmt.Errorf("setting the policies of this edition: %w", err)
	}
	return nil
}

// seconds is an age as the database takes it; never is null.
func seconds(age time.Duration) any {
	if age == 0 {
		return nil
	}
	return age.Seconds()
}
