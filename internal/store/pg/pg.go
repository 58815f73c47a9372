// Package pg connects to PostgreSQL: it has the pools of a role, runs transactions and reads on standbys, converts
// between rows and the domain, and maps SQLSTATEs to domain errors. The packages beside it have the statements.
package pg

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/config"
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
	// Notify has a connection for a round, one for what it reads meanwhile, and one for the outbox.
	Notify = Role{"roomsensor notify", "30s", "5s", "60s", 3, 1, 0, false}
)

// Pooled returns the role for connections through PgBouncer in transaction mode. Each transaction may run in another
// session: the connections use no prepared statements, and the timeouts must be settings of the role in the database.
func (r Role) Pooled() Role {
	r.pooled = true
	return r
}

const (
	// connectTimeout limits an attempt to connect, unless the database URL has a connect_timeout.
	connectTimeout = 3 * time.Second
	pingTimeout    = 300 * time.Millisecond
	// Connections are replaced after this time, so that a new address of the server is picked up; the jitter spreads the
	// reconnects.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// DB has the pools of a role. It is safe for concurrent use.
type DB struct {
	Pool      *pgxpool.Pool
	Admission *pgxpool.Pool // pool itself if the role has no connections for admission
	Exports   *pgxpool.Pool // nil if the role serves no exports
	Queries   *db.Queries
	role      Role
	standbys  standbys

	StandbyTimes StandbyTimes // Tests set other ones.
}

// Open creates the pools of a role. It does not connect: a server that does not respond yet is not an error, see Ping.
func Open(ctx context.Context, databaseURL string, role Role) (*DB, error) {
	pool, err := openPool(ctx, databaseURL, role, role.maxConns)
	if err != nil {
		return nil, err
	}
	s := &DB{Pool: pool, Admission: pool, Queries: db.New(), role: role, StandbyTimes: defaultStandbyTimes}
	name := role.name
	if role.admission > 0 {
		role.name = name + " admission"
		if s.Admission, err = openPool(ctx, databaseURL, role, role.admission); err != nil {
			s.Close()
			return nil, err
		}
	}
	if role.exports > 0 {
		role.name = name + " export"
		if s.Exports, err = openPool(ctx, databaseURL, role, role.exports); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func openPool(ctx context.Context, databaseURL string, role Role, maxConns int32) (*pgxpool.Pool, error) {
	server, err := readServer(func() (*pgxpool.Config, error) { return parse(databaseURL) })
	if err != nil {
		return nil, err
	}
	return newPool(ctx, server, role, maxConns)
}

// parse reads a database URL and the files that it names: certificates, keys, and its own file if it is in one
// (config.Secret).
func parse(databaseURL string) (*pgxpool.Config, error) {
	text, err := config.Secret(databaseURL).Read()
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	parsed, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	return parsed, nil
}

// newPool creates a pool of a role on a server.
func newPool(ctx context.Context, on *server, role Role, maxConns int32) (*pgxpool.Pool, error) {
	config := on.config.Copy()
	config.BeforeConnect = on.beforeConnect
	config.MaxConns = maxConns
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetimeJitter
	config.PingTimeout = pingTimeout
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
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
		// With JIT, a worker's first batches on a connection took 0.1 to 0.2 s longer, and exports no less (bench/NOTES.md).
		"jit": "off",
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

// maxSilence is the time without a confirmation of sent data after which a connection is closed. A machine that
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
func (s *DB) Close() {
	s.Pool.Close()
	s.Admission.Close()
	if s.Exports != nil {
		s.Exports.Close()
	}
	for _, b := range s.standbys.list {
		b.close()
	}
}

// Ping returns an error if the database does not respond. It does not wait for connections that are in use, because a
// database with much to do is not unavailable.
func (s *DB) Ping(ctx context.Context) error {
	if err := s.Admission.Ping(ctx); err != nil {
		return fmt.Errorf("connecting to the database: %w", Translate(err))
	}
	return nil
}

// Pool is the state of a pool of database connections.
type Pool struct {
	Name        string // main, admission, export, or standby or standby export with host and port
	InUse, Idle int    // connections
	Max         int
	Waits       int64         // requests for a connection that had to wait for one, since the start
	WaitTime    time.Duration // of these, in total
}

// Pools returns the state of the pools of the role, without a request to the database.
func (s *DB) Pools() []Pool {
	pools := []Pool{poolState("main", s.Pool)}
	if s.Admission != s.Pool {
		pools = append(pools, poolState("admission", s.Admission))
	}
	if s.Exports != nil {
		pools = append(pools, poolState("export", s.Exports))
	}
	for _, b := range s.standbys.list {
		pools = append(pools, poolState("standby "+b.name, b.pool), poolState("standby export "+b.name, b.exports))
	}
	return pools
}

func poolState(name string, pool *pgxpool.Pool) Pool {
	stat := pool.Stat()
	return Pool{
		Name: name, InUse: int(stat.AcquiredConns()), Idle: int(stat.IdleConns()), Max: int(stat.MaxConns()),
		Waits: stat.EmptyAcquireCount(), WaitTime: stat.EmptyAcquireWaitTime(),
	}
}
