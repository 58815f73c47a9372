package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
)

// Classes of advisory locks: the first halves of their keys. The second halves are in the names of databases.
const (
	ownerClass  = 0x72730001 // held by the process whose tests use a database
	usersClass  = 0x72730002 // shared by the processes that copy a template
	makingClass = 0x72730003 // held by the process that creates a template
	rolesClass  = 0x72730004 // held by the process that creates the roles
)

const (
	testPrefix     = "roomsensor_test_"
	templatePrefix = "roomsensor_template_"

	// busyTimeout limits the wait of creating or dropping a database while others, such as TimescaleDB's scheduler, use
	// it.
	busyTimeout = time.Minute
	busyPause   = 100 * time.Millisecond
)

// TemporaryVariable names the environment variable that is set if TEST_DATABASE_URL is a server that is removed after
// the tests. Databases stay there when their tests end, because each DROP DATABASE makes PostgreSQL write a checkpoint.
const TemporaryVariable = "TEST_DATABASE_TEMPORARY"

// server is a PostgreSQL server with databases for tests.
type server struct {
	url       string
	temporary bool // see TemporaryVariable
	// key is the second half of this process's lock key, and part of the names of its databases. If the process is
	// killed, PostgreSQL releases the lock, and the next process drops the databases.
	key  int32
	made atomic.Int64

	// The template with the migrations of this binary.
	templateName string
	templateKey  int32

	mu      sync.Mutex
	session *pgx.Conn // holds the locks until the process ends
	ready   bool
	info    postgres.Info
}

// open connects to a server and, unless it is temporary, drops the databases that killed tests left on it.
func open(ctx context.Context, url string, temporary bool) (*server, error) {
	session, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server of the tests: %w", err)
	}
	s := &server{url: url, temporary: temporary, session: session}
	s.key = rand.Int32() //nolint:gosec // It only has to differ between processes.
	if err := s.nameTemplate(ctx); err != nil {
		return nil, err
	}
	// From here on, no other process drops databases with one of these two keys in their names.
	_, err = session.Exec(ctx, "SELECT pg_advisory_lock($1, $2), pg_advisory_lock_shared($3, $4)",
		ownerClass, s.key, usersClass, s.templateKey)
	if err != nil {
		return nil, fmt.Errorf("locking the databases of this process: %w", err)
	}
	if !temporary {
		err = s.sweep(ctx)
	}
	return s, err
}

// database creates a copy of a template for a test.
func (s *server) database(t testing.TB, template string) *DB {
	t.Helper()
	name := fmt.Sprintf("%s%08x_%d", testPrefix, s.key, s.made.Add(1))
	require.NoError(t, s.create(t.Context(), name, template))
	if !s.temporary {
		t.Cleanup(func() { require.NoError(t, s.drop(context.Background(), name)) })
	}
	return &DB{URL: s.urlOf(name)}
}

func (s *server) urlOf(name string) string {
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme == "" {
		return s.url + " dbname=" + name // A connection string such as `host=localhost`.
	}
	u.Path = "/" + name
	return u.String()
}

func (s *server) create(ctx context.Context, name, template string) error {
	// The default strategy writes all pages to the log, which takes twice the processor time.
	return s.whenIdle(ctx, template,
		"CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+" ENCODING 'UTF8' STRATEGY FILE_COPY")
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.whenIdle(ctx, name, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
}

// whenIdle executes a statement that needs a database without other sessions, and ends those sessions.
func (s *server) whenIdle(ctx context.Context, busy, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return fmt.Errorf("connecting to the server of the tests: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for {
		_, err = conn.Exec(ctx, statement)
		if err == nil {
			return nil
		}
		if !objectInUse(err) {
			return fmt.Errorf("executing %s: %w", statement, err)
		}
		if err := disconnectOthers(ctx, conn, busy); err != nil {
			return err
		}
	}
}

func objectInUse(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "55006"
}

// disconnectOthers ends the sessions of a database and waits for them for a moment.
func disconnectOthers(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_sleep($1)", busyPause.Seconds())
	}
	if err != nil {
		return fmt.Errorf("ending the sessions of %s: %w", name, err)
	}
	return nil
}

// describe returns the versions and the edition of the server.
func (s *server) describe() (postgres.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info != (postgres.Info{}) {
		return s.info, nil
	}
	info, err := postgres.Describe(context.Background(), s.url)
	s.info = info
	return info, err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
