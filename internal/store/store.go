package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/teamcache"
	"roomsensor/internal/teamlimit"
)

// Role is what a process does with the database. It sets the timeouts of statements and locks and the number of
// connections.
type Role struct {
	name             string
	statementTimeout string
	lockTimeout      string
	idleInTx         string
	maxConns         int32
	admission        int32 // connections for keys, the rate limit and probes; 0 if these share the others
	exports          int32 // connections for exports; 0 if the process serves none
	pooled           bool  // behind PgBouncer, see Pooled
}

// The roles. The API gives up after 5 s, but the worker waits longer, because a chunk may be locked while it is
// rewritten. The connections for admission are as many as can be in use at once, so that none of their users waits for
// another one or for pages: two for the rate limit (limiterStatements), one for keys that are looked up (one query at a
// time), one for the list of ingest keys, and one for the probes of readiness.
var (
	API      = Role{"roomsensor api", "5s", "2s", "10s", 16, 4, 16, false}
	Ingest   = Role{"roomsensor ingest", "30s", "5s", "60s", 6, 3, 0, false}
	Operator = Role{"roomsensor", "30s", "5s", "60s", 2, 0, 0, false}
	// Dashboard has half of the connections of the API, so that pages leave most of the database to its clients,
	// and one for the probes of readiness.
	Dashboard = Role{"roomsensor dashboard", "5s", "2s", "10s", 8, 1, 4, false}
)

// Pooled returns the role for connections through PgBouncer in transaction mode. Each transaction may run in another
// session: the connections use no prepared statements, and the timeouts must be settings of the role in the database.
func (r Role) Pooled() Role {
	r.pooled = true
	return r
}

const (
	connectTimeout = 3 * time.Second
	pingTimeout    = 300 * time.Millisecond
	// Connections are replaced after this time, so that a new address of the server is picked up; the jitter spreads the
	// reconnects.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Store reads and writes the database. It is safe for concurrent use.
type Store struct {
	pool        *pgxpool.Pool
	admission   *pgxpool.Pool // pool itself if the role has no connections for admission
	exports     *pgxpool.Pool // nil if the role serves no exports
	queries     *db.Queries
	changes     keyedLock          // by idempotency key
	teamExports *teamlimit.Limiter // exports that are being read
	limiter     limiter
	role        Role
	standbys    standbys
	kept        *teamcache.Values[keptTeam]
	aloneReads  chan struct{} // full while maxAloneReads snapshots of single teams are read
	hours       hourCounters

	// Tests set other values, so that they need less data or wait for a slow machine.
	sliceRows, minCopyRows int
	exportRowsTimeout      time.Duration
	scans                  scanLimits
	feedCandidates         int
	feedTime               time.Duration
	aggregateTime          time.Duration
	aggregateCells         int
	statementReadings      int
	keepAll, keepPast      time.Duration
	maxHistories           int
	standbyTimes           standbyTimes
}

// Open creates the pools of a role. It does not connect: a server that does not respond yet is not an error, see Ping.
func Open(ctx context.Context, databaseURL string, role Role) (*Store, error) {
	pool, err := openPool(ctx, databaseURL, role, role.maxConns)
	if err != nil {
		return nil, err
	}
	s := &Store{
		pool: pool, admission: pool, queries: db.New(), role: role,
		kept: teamcache.NewValues[keptTeam](maxKeptBytes), keepAll: keepAll, keepPast: keepPast,
		aloneReads: make(chan struct{}, maxAloneReads), maxHistories: maxHistories,
		sliceRows: defaultSliceRows, minCopyRows: defaultMinCopyRows, exportRowsTimeout: exportRowsTimeout,
		teamExports:    teamlimit.New(maxTeamExports()),
		scans:          defaultScanLimits,
		feedCandidates: feedCandidates, feedTime: feedTime,
		aggregateTime: aggregateTime, aggregateCells: defaultAggregateCells,
		statementReadings: defaultStatementReadings, standbyTimes: defaultStandbyTimes,
	}
	s.limiter.count = func(ctx context.Context, p db.RateWindowHitParams) ([]db.RateWindowHitRow, error) {
		p.WithPosition = len(s.standbys.list) > 0
		return s.queries.RateWindowHit(ctx, s.admission, p)
	}
	name := role.name
	if role.admission > 0 {
		role.name = name + " admission"
		if s.admission, err = openPool(ctx, databaseURL, role, role.admission); err != nil {
			s.Close()
			return nil, err
		}
	}
	if role.exports > 0 {
		role.name = name + " export"
		if s.exports, err = openPool(ctx, databaseURL, role, role.exports); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func openPool(ctx context.Context, databaseURL string, role Role, maxConns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	return newPool(ctx, config, role, maxConns)
}

// newPool creates a pool of a role. It changes the configuration.
func newPool(ctx context.Context, config *pgxpool.Config, role Role, maxConns int32) (*pgxpool.Pool, error) {
	config.MaxConns = maxConns
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetimeJitter
	config.PingTimeout = pingTimeout
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = newDialer().DialContext
	config.ConnConfig.BuildFrontend = newFrontend
	config.ConnConfig.Tracer = tracer{}
	config.AfterConnect = registerTypes
	if role.pooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		config.ConnConfig.RuntimeParams["application_name"] = role.name
		return connectLater(ctx, config)
	}
	for name, value := range map[string]string{
		"application_name":                    role.name,
		"statement_timeout":                   role.statementTimeout,
		"lock_timeout":                        role.lockTimeout,
		"idle_in_transaction_session_timeout": role.idleInTx,
		"synchronous_commit":                  "on", // Acknowledged uploads must survive a crash.
	} {
		if _, set := config.ConnConfig.RuntimeParams[name]; !set {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	return connectLater(ctx, config)
}

// connectLater creates a pool, which connects when it is used.
func connectLater(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("creating the database pool: %w", err)
	}
	return pool, nil
}

// maxSilence is how long a server may not confirm what was sent to it before its connection is closed. A machine that
// failed or was disconnected sends nothing: by default the kernel retries for a quarter of an hour, while transactions
// wait until their context ends, although a standby was promoted long ago. A slow statement is not affected, because
// the kernel of the server confirms the packets.
const maxSilence = 10 * time.Second

// newDialer returns a dialer whose connections detect such a server: with keep-alives while a response is awaited, and
// with limitSilence also while sent data is unconfirmed.
func newDialer() *net.Dialer {
	const idle, interval, count = 4 * time.Second, 2 * time.Second, 3 // maxSilence in total.
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: count},
		Control:         limitSilence,
	}
}

// readBuffer is 8 times the size of the read buffer of pgx, because a page takes 70 KB and an export 17 MB.
const readBuffer = 64 << 10

func newFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(bufio.NewReaderSize(r, readBuffer), w)
}

// Close waits for running queries and closes all connections.
func (s *Store) Close() {
	s.pool.Close()
	s.admission.Close()
	if s.exports != nil {
		s.exports.Close()
	}
	for _, b := range s.standbys.list {
		b.close()
	}
}

// Ping returns an error if the database does not respond. It does not wait for connections that are in use, because a
// database with much to do is not unavailable.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.admission.Ping(ctx); err != nil {
		return fmt.Errorf("connecting to the database: %w", translate(err))
	}
	return nil
}

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
	row, err := s.queries.DatabaseGet(ctx, s.pool)
	if err != nil {
		return Database{}, fmt.Errorf("reading the edition: %w", translate(err))
	}
	chunks, err := s.queries.ChunkCount(ctx, s.pool)
	if err != nil {
		return Database{}, fmt.Errorf("counting chunks: %w", translate(err))
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

// inTx runs a function in a transaction of the default isolation level.
func (s *Store) inTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.pool, run); err != nil {
		return fmt.Errorf("%s: %w", doing, translate(err))
	}
	return nil
}

// inChange is inTx for what the audit log records: the entries of the transaction have the actor of ctx.
func (s *Store) inChange(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.inTx(ctx, doing, func(tx pgx.Tx) error {
		if err := s.set(ctx, tx, actorSetting, actorText(ctx)); err != nil {
			return err
		}
		return run(tx)
	})
}

// inSnapshot runs a function that only reads, from one snapshot. It forces custom plans: a generic plan of a query for
// some devices and hours reads the hours of all devices in all chunks.
func (s *Store) inSnapshot(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.snapshotOf(ctx, s.pool, doing, run)
}

// snapshotOf is inSnapshot on a server.
func (s *Store) snapshotOf(ctx context.Context, from reader, doing string, run func(pgx.Tx) error) error {
	return s.readOnly(ctx, from, doing, func(tx pgx.Tx) error {
		if err := s.set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
			return err
		}
		return run(tx)
	})
}

// readOnly runs a function that only reads, from one snapshot of a server.
func (s *Store) readOnly(ctx context.Context, from reader, doing string, run func(pgx.Tx) error) error {
	complete := false
	err := pgx.BeginTxFunc(ctx, from, snapshot, func(tx pgx.Tx) error {
		err := run(tx)
		complete = err == nil
		return err
	})
	if err != nil && !complete { // The end of a transaction that only reads cannot make its result wrong.
		return fmt.Errorf("%s: %w", doing, translate(err))
	}
	return nil
}

var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// set sets parameters of the server, given as names and values, until the transaction ends.
func (s *Store) set(ctx context.Context, tx pgx.Tx, pairs ...string) error {
	return s.queries.SettingsSet(ctx, tx, settings(pairs...))
}

// settings returns the parameters of SettingsSet, given as names and values.
func settings(pairs ...string) (p db.SettingsSetParams) {
	for pair := range slices.Chunk(pairs, 2) {
		p.Names, p.SettingValues = append(p.Names, pair[0]), append(p.SettingValues, pair[1])
	}
	return p
}

// convert converts rows to the domain. The result is never nil, so that an empty list becomes [] in JSON.
func convert[Row, T any](rows []Row, convertRow func(*Row) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = convertRow(&rows[i])
	}
	return list
}

// tryConvert is convert for rows that may be invalid.
func tryConvert[Row, T any](rows []Row, convertRow func(*Row) (T, error)) ([]T, error) {
	list := make([]T, len(rows))
	for i := range rows {
		var err error
		if list[i], err = convertRow(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC())
}

// text returns a text of the database; empty for null.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
