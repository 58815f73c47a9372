// Package ops reads how the data is stored and the figures of the database and its server, for operators.
package ops

import (
	"context"
	"fmt"

	"roomsensor/internal/store/pg"
)

// Store reads the figures of a database. It is safe for concurrent use.
type Store struct{ *pg.DB }

// New returns a store with the pools of a role.
func New(d *pg.DB) *Store { return &Store{d} }

// Database is the edition and version of TimescaleDB, what the role of this process may do, and the size of the lock
// table.
type Database struct {
	Edition     string // apache or community
	Version     string
	IsSuperuser bool
	// IsBounded reports whether statements have a timeout, and commits survive a crash of the server.
	IsBounded bool
	MaxLocks  int // max_locks_per_transaction
	Chunks    int // of all tables of the database
}

// minLocks is the smallest value that NeededLocks returns: enough for 128 chunks.
const minLocks = 256

// NeededLocks returns the value that max_locks_per_transaction needs, or 0 if it is large enough. A query over all
// chunks locks each of them and its primary key, and as many such queries as the server has connections may run at
// once; PostgreSQL's lock table has room for max_locks_per_transaction locks per connection.
func (d Database) NeededLocks() int {
	if d.MaxLocks >= 2*d.Chunks {
		return 0
	}
	needed := minLocks
	for needed < 2*d.Chunks {
		needed *= 2
	}
	return needed
}

// Database returns the edition and version of TimescaleDB and the rights of the role, or ErrNotFound if the database
// was never migrated.
func (s *Store) Database(ctx context.Context) (Database, error) {
	row, err := s.Queries.DatabaseGet(ctx, s.Pool)
	if err != nil {
		return Database{}, fmt.Errorf("reading the edition: %w", pg.Translate(err))
	}
	chunks, err := s.Queries.ChunkCount(ctx, s.Pool)
	if err != nil {
		return Database{}, fmt.Errorf("counting chunks: %w", pg.Translate(err))
	}
	edition := "apache"
	if row.License == "timescale" {
		edition = "community"
	}
	return Database{
		Edition: edition, Version: row.Version, IsSuperuser: row.IsSuperuser, IsBounded: row.IsBounded,
		MaxLocks: int(row.MaxLocks), Chunks: int(chunks),
	}, nil
}
