// Package dbtest gives every test a TimescaleDB database of its own.
//
// The server is that of TEST_DATABASE_URL, or one that this package starts and leaves running for the next tests;
// `go tool task clean` ends it. A test without a server fails, it is never skipped.
package dbtest

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/localdb"
)

// setupTimeout is for the first use on a machine, which may have to download PostgreSQL.
const setupTimeout = 9 * time.Minute

// DB is the database of one test; it is dropped when the test ends.
type DB struct {
	// URL is that of a role which may do everything.
	URL string
}

// With is the URL with one parameter more; the server's may have some already, or none.
func (d *DB) With(parameter, value string) string {
	mark := "?"
	if strings.Contains(d.URL, "?") {
		mark = "&"
	}
	return d.URL + mark + parameter + "=" + url.QueryEscape(value)
}

// New returns a database with every migration applied and no rows.
func New(t testing.TB) *DB {
	t.Helper()
	s := use(t)
	template, err := s.template(t.Context())
	require.NoError(t, err)
	return s.database(t, template)
}

// Empty returns a database without anything, not even the extensions.
func Empty(t testing.TB) *DB {
	t.Helper()
	return use(t).database(t, "template0")
}

// Edition returns the edition of the server, localdb.Apache or localdb.Community.
func Edition(t testing.TB) string {
	t.Helper()
	info, err := use(t).describe()
	require.NoError(t, err)
	return info.Edition
}

// NeedCommunity skips a test of what the Apache edition does not have.
func NeedCommunity(t testing.TB) {
	t.Helper()
	conformance.NeedsMachine(t, "the Community edition of TimescaleDB")
	if Edition(t) != localdb.Community {
		t.Skip("needs the Community edition of TimescaleDB, and the server has the Apache edition")
	}
}

// shared is the server of all tests of this process.
var shared = sync.OnceValues(func() (*server, error) {
	dir, err := localdb.TestDataDir()
	if err != nil {
		return nil, err
	}
	// Not the context of the test that happens to be the first.
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	found, err := localdb.Start(ctx, localdb.Options{
		URL: os.Getenv("TEST_DATABASE_URL"), URLVariable: "TEST_DATABASE_URL",
		DataDir: dir, Settings: localdb.ForTests(), Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return open(ctx, found.URL)
})

func use(t testing.TB) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("the tests need a TimescaleDB: %v", err)
	}
	return s
}
