// Package store is the only user of the database: it turns rows into the
// domain and back, SQLSTATEs into the domain's errors, and holds every
// transaction. Every method that serves a client takes the team's id.
package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Role is what a process does with the database; it decides how long a
// statement and a lock may take, and how many connections there are.
type Role struct {
	name             string
	statementTimeout string
	lockTimeout      string
	idleInTx         string
	maxConns         int32
	exports          int32 // connections for exports; 0 where none are served
}

// The roles. A page that takes 5 s has failed; a batch of a worker may wait
// for a chunk that is being rewritten.
var (
	API      = Role{"roomsensor api", "5s", "2s", "10s", 16, 16}
	Ingest   = Role{"roomsensor ingest", "30s", "5s", "60s", 6, 0}
	Operator = Role{"roomsensor", "30s", "5s", "60s", 2, 0}
)

const (
	connectTimeout = 3 * time.Second
	pingTimeout    = 300 * time.Millisecond
	// connLifetime spreads reconnects, so that a promoted standby or a new
	// address takes over without a burst.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Store serves one role's questions. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	exports *pgxpool.Pool
	queries *db.Queries
	changes keyedLock
	limiter limiter
}

// Open prepares the pools. It does not connect: an address that does not
// answer yet is not an error, see Ping.
func Open(ctx context.Context, databaseURL string, role Role) (*Store, error) {
	pool, err := openPool(ctx, databaseURL, role, role.maxConns, limitSilence)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, queries: db.New()}
	s.limiter.count = func(ctx context.Context, keyIDs []string) ([]db.RateWindowHitsRow, error) {
		return s.queries.RateWindowHits(ctx, s.pool, keyIDs)
	}
	if role.exports > 0 {
		role.name += " export"
		if s.exports, err = openPool(ctx, databaseURL, role, role.exports, nil); err != nil {
			pool.Close()
			return nil, err
		}
	}
	return s, nil
}

func openPool(
	ctx context.Context, databaseURL string, role Role, maxConns int32, limit controller,
) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	config.MaxConns = maxConns
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetimeJitter
	config.PingTimeout = pingTimeout
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = newDialer(limit).DialContext
	config.ConnConfig.BuildFrontend = readAhead
	config.AfterConnect = registerTypes
	for name, value := range map[string]string{
		"application_name":                    role.name,
		"statement_timeout":                   role.statementTimeout,
		"lock_timeout":                        role.lockTimeout,
		"idle_in_transaction_session_timeout": role.idleInTx,
		"synchronous_commit":                  "on", // What is acknowledged must survive a crash.
	} {
		if _, set := config.ConnConfig.RuntimeParams[name]; !set {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("preparing the database pool: %w", err)
	}
	return pool, nil
}

// answerBuffer is how much of an answer one read takes from the kernel, if it is
// there: 8 times what pgx asks for, as a page takes 70 KB and an export 17 MB.
const answerBuffer = 64 << 10

func readAhead(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(bufio.NewReaderSize(r, answerBuffer), w)
}

// Close waits for what runs and closes every connection.
func (s *Store) Close() {
	s.pool.Close()
	if s.exports != nil {
		s.exports.Close()
	}
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("reaching the database: %w", translate(err))
	}
	return nil
}

// Database names the edition and version of TimescaleDB. ErrNotFound says that
// the database was not migrated.
func (s *Store) Database(ctx context.Context) (roomsensor.Database, error) {
	row, err := s.queries.DatabaseInfo(ctx, s.pool)
	if err != nil {
		return roomsensor.Database{}, fmt.Errorf("reading the edition: %w", translate(err))
	}
	edition := "apache"
	if row.License == "timescale" {
		edition = "community"
	}
	return roomsensor.Database{Edition: edition, Version: row.Version}, nil
}

// inTx runs a function in a transaction of the ordinary isolation level. A
// refusal is passed on as it is: it is a sentence for the operator.
func (s *Store) inTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.pool, run)
	var refusal roomsensor.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return refusal
	}
	return fmt.Errorf("%s: %w", doing, translate(err))
}

// inSnapshot runs a function that reads from one snapshot.
func (s *Store) inSnapshot(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	if err := pgx.BeginTxFunc(ctx, s.pool, snapshot, run); err != nil {
		return fmt.Errorf("%s: %w", doing, translate(err))
	}
	return nil
}

var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// set changes parameters of the server for the rest of a transaction.
func (s *Store) set(ctx context.Context, tx pgx.Tx, pairs ...string) error {
	for pair := range slices.Chunk(pairs, 2) {
		err := s.queries.SettingLocal(ctx, tx, db.SettingLocalParams{Name: pair[0], Value: pair[1]})
		if err != nil {
			return err
		}
	}
	return nil
}
