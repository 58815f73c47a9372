package dbtest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
)

func TestMain(m *testing.M) { Verify(m) }

// connect returns a connection that ends with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

// ask returns the only value of a query.
func ask[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

const exists = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"

func TestNew(t *testing.T) {
	t.Parallel()
	a, b := connect(t, New(t).URL), connect(t, New(t).URL)
	_, err := a.Exec(t.Context(), "INSERT INTO teams (name) VALUES ('one')")
	require.NoError(t, err)
	require.Equal(t, 1, ask[int](t, a, "SELECT count(*) FROM teams"))
	require.Equal(t, 0, ask[int](t, b, "SELECT count(*) FROM teams"))
	require.True(t, ask[bool](t, b, "SELECT EXISTS (SELECT FROM timescaledb_information.hypertables)"))
}

// TestDrop checks that the database of a test is dropped with it, also if the test leaves a connection open, unless the
// server is temporary.
//
//nolint:tparallel // The inner test must end before the check.
func TestDrop(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), Empty(t).URL)
		require.NoError(t, err)
		name = ask[string](t, conn, "SELECT current_database()")
	})
	// A temporary server is removed with its databases.
	require.Equal(t, use(t).temporary, ask[bool](t, connect(t, use(t).url), exists, name))
}

func TestEdition(t *testing.T) {
	t.Parallel()
	license := ask[string](t, connect(t, New(t).URL), "SHOW timescaledb.license")
	require.Equal(t, map[string]string{"apache": postgres.Apache, "timescale": postgres.Community}[license], Edition(t))
	t.Run("community", func(t *testing.T) {
		t.Parallel()
		NeedCommunity(t)
		require.Equal(t, "timescale", license)
	})
}

// process opens a server as another test binary does: with its own session and lock key.
func process(t *testing.T, url string) *server {
	t.Helper()
	s, err := open(t.Context(), url, false)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.session.Close(context.Background())) })
	return s
}

// busyServer starts a server on which TimescaleDB's scheduler runs, and returns its URL.
func busyServer(t *testing.T) string {
	t.Helper()
	settings := Settings()
	delete(settings, "timescaledb.max_background_workers")
	s, remove, err := StartTemporary(t.Context(), postgres.Options{Settings: settings, Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	return s.URL
}

// TestBusyServer checks templates and sweeping beside TimescaleDB's scheduler, in turn on one server, because a sweep
// sees all databases.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	url := busyServer(t)
	t.Run("processes share a template", func(t *testing.T) { testSharedTemplate(t, url) })
	t.Run("databases of killed processes are dropped", func(t *testing.T) { testSweep(t, url) })
	t.Run("an unfinished template is created again", func(t *testing.T) { testUnfinishedTemplate(t, url) })
}

func testSharedTemplate(t *testing.T, url string) {
	t.Helper()
	var wg sync.WaitGroup
	for range 3 {
		s := process(t, url)
		wg.Go(func() {
			for range 3 {
				template, err := s.template(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				s.database(t, template)
			}
		})
	}
	wg.Wait()
	templates := "SELECT count(*) FROM pg_database WHERE datname LIKE 'roomsensor_template_%'"
	require.Equal(t, 1, ask[int](t, connect(t, url), templates))
}

func testSweep(t *testing.T, url string) {
	t.Helper()
	killed, alive := process(t, url), process(t, url)
	ctx := t.Context()
	require.NoError(t, killed.create(ctx, "roomsensor_test_0000000a_1", "template0"))
	require.NoError(t, killed.create(ctx, "roomsensor_template_0000000b", "template0"))
	require.NoError(t, killed.alter(ctx, "roomsensor_template_0000000b", "IS_TEMPLATE true"))
	require.NoError(t, killed.create(ctx, "roomsensor_test_mine", "template0"))
	template, err := killed.template(ctx)
	require.NoError(t, err)
	used := alive.database(t, template).URL

	process(t, url)
	conn := connect(t, url)
	require.False(t, ask[bool](t, conn, exists, "roomsensor_test_0000000a_1"))
	require.False(t, ask[bool](t, conn, exists, "roomsensor_template_0000000b"))
	require.True(t, ask[bool](t, conn, exists, "roomsensor_test_mine"))
	require.True(t, ask[bool](t, conn, exists, template))
	require.Equal(t, 0, ask[int](t, connect(t, used), "SELECT count(*) FROM teams"))
}

// testUnfinishedTemplate leaves a template as a process does that is killed while it migrates.
func testUnfinishedTemplate(t *testing.T, url string) {
	t.Helper()
	s := process(t, url)
	require.NoError(t, s.dropIfExists(t.Context(), s.templateName))
	require.NoError(t, s.create(t.Context(), s.templateName, "template0"))
	require.NoError(t, s.alter(t.Context(), s.templateName, "IS_TEMPLATE true"))
	template, err := s.template(t.Context())
	require.NoError(t, err)
	require.Equal(t, 0, ask[int](t, connect(t, s.database(t, template).URL), "SELECT count(*) FROM teams"))
}
