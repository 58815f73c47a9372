package dbtest

import (
	"context"
	"flag"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dev/postgres"
	"roomsensor/schema"
	"roomsensor/test/conformance"
)

// setupTimeout is for the first use on a machine, which may have to download PostgreSQL.
const setupTimeout = 9 * time.Minute

// DB is the database of one test.
type DB struct {
	// URL logs in as a superuser.
	URL string
}

// With returns the URL with one more parameter.
func (d *DB) With(parameter, value string) string {
	mark := "?"
	if strings.Contains(d.URL, "?") {
		mark = "&"
	}
	escaped := strings.ReplaceAll(url.QueryEscape(value), "+", "%20") // In URLs of PostgreSQL, + is not a space.
	return d.URL + mark + parameter + "=" + escaped
}

// password is that of the roles.
const password = "roomsensor"

// roles are the roles of the processes on the server of the tests.
var roles = schema.Roles{Prefix: "roomsensor_test", Passwords: map[schema.Role]string{
	schema.RoleAPI: password, schema.RoleWorker: password, schema.RoleReceiver: password,
	schema.RoleDashboard: password, schema.RoleNotify: password,
}}

// As returns the URL with which a process logs in that has only the rights of its role. The database must be from New.
func (d *DB) As(t testing.TB, role schema.Role) string {
	t.Helper()
	url, err := roles.URL(d.URL, role)
	require.NoError(t, err)
	return url
}

// New returns a database with every migration applied and no rows.
func New(t testing.TB) *DB {
	t.Helper()
	s := use(t)
	template, err := s.template(t.Context())
	require.NoError(t, err)
	return s.database(t, template)
}

// Empty returns a database without tables and extensions.
func Empty(t testing.TB) *DB {
	t.Helper()
	return use(t).database(t, "template0")
}

// Edition returns the edition of the server, postgres.Apache or postgres.Community.
func Edition(t testing.TB) string {
	t.Helper()
	info, err := use(t).describe()
	require.NoError(t, err)
	return info.Edition
}

// NeedCommunity skips a test if the server has the Apache edition.
func NeedCommunity(t testing.TB) {
	t.Helper()
	conformance.NeedsMachine(t, "the Community edition of TimescaleDB")
	if Edition(t) != postgres.Community {
		t.Skip("needs the Community edition of TimescaleDB, and the server has the Apache edition")
	}
}

// Main runs the tests of a package and then checks that no goroutine is left. Call it in TestMain if property tests of
// the package use a database, of PostgreSQL or in a file: it lowers the number of their draws from rapid's default of
// 100 to 25, because each draw runs statements. The flag -rapid.checks and the variable RAPID_CHECKS still win.
func Main(m *testing.M) {
	flag.Parse()
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err) // The package has no property test.
		}
	}
	Verify(m)
}

// Verify runs the tests of a package that uses a database, and then checks that no goroutine is left but one that pgx
// starts when a write takes longer than 15 ms: it reads until the next answer, and the session with the locks of this
// process gets no more answers.
func Verify(m *testing.M, options ...goleak.Option) {
	const reader = "github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"
	goleak.VerifyTestMain(m, append(options, goleak.IgnoreAnyFunction(reader))...)
}

// shared opens the server for all tests of this process, once.
var shared = sync.OnceValues(func() (*server, error) {
	dir, err := DataDir()
	if err != nil {
		return nil, err
	}
	// The context of the first test would end before other tests.
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	found, err := postgres.Start(ctx, postgres.Options{
		URL: os.Getenv("TEST_DATABASE_URL"), URLVariable: "TEST_DATABASE_URL",
		DataDir: dir, Settings: Settings(), Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return open(ctx, found.URL, os.Getenv(TemporaryVariable) != "")
})

func use(t testing.TB) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("the tests need a TimescaleDB: %v", err)
	}
	return s
}
