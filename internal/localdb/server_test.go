package localdb

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// query returns the one text that an SQL statement gives.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var text string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&text))
	return text
}

// execute runs SQL statements.
func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func TestServerKeepsItsDataAndURL(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)

	_, err := Find(t.Context(), d.path)
	require.ErrorIs(t, err, ErrNotRunning)
	first, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.True(t, first.Started)
	execute(t, first.URL, "CREATE TABLE kept AS SELECT 1 AS n")

	again, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.Equal(t, &Server{URL: first.URL, How: first.How, DataDir: d.path}, again)
	found, err := Find(t.Context(), d.path)
	require.NoError(t, err)
	require.Equal(t, again, found)

	require.NoError(t, Stop(t.Context(), d.path))
	require.NoError(t, Stop(t.Context(), d.path), "stopping twice")
	_, err = Find(t.Context(), d.path)
	require.ErrorIs(t, err, ErrNotRunning)

	restarted, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.Equal(t, "1", query(t, restarted.URL, "SELECT n::text FROM kept"))
}

func TestServerHasTheSettings(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	o := options(t, d)
	o.Settings["application_name"] = "it's"
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	for name, want := range ForTests() {
		require.Equal(t, want, query(t, s.URL, "SELECT current_setting('"+name+"')"))
	}
	require.Equal(t, "it's", query(t, s.URL, "SELECT reset_val FROM pg_settings WHERE name = 'application_name'"))
	execute(t, s.URL, "CREATE EXTENSION timescaledb; CREATE EXTENSION btree_gist")
	require.Equal(t, "off", query(t, s.URL, "SELECT current_setting('timescaledb.telemetry_level')"))
	require.Equal(t, "on", query(t, s.URL, "SELECT current_setting('synchronous_commit')"))
	// Its library is loaded only for costly queries, and fails there when what it needs is not found.
	query(t, s.URL, "SELECT pg_jit_available()::text")
}

func TestServerWantsThePassword(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	config, err := pgx.ParseConfig(s.URL)
	require.NoError(t, err)
	config.Password = "guessed"
	_, err = pgx.ConnectConfig(t.Context(), config)
	require.ErrorContains(t, err, "28P01")
}

func TestStartAtTheSameMomentEndsWithOneServer(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	servers := make([]*Server, 4)
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() {
			var err error
			if servers[i], err = Start(context.Background(), options(t, d)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	started := 0
	for _, s := range servers {
		require.NotNil(t, s)
		require.Equal(t, servers[0].URL, s.URL)
		if s.Started {
			started++
		}
	}
	require.Equal(t, 1, started)
}

func TestServerOutlivesItsStarterAndHoldsNoneOfItsStreams(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	//nolint:gosec // It is this test binary.
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+d.path)
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Stderr = t.Output()
	// A pipe of our own: unlike a buffer it shows whether anybody but the child keeps it open.
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	child.Stdout = writer
	require.NoError(t, child.Start())
	require.NoError(t, writer.Close())
	printed, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, child.Wait(), string(printed))

	found, err := Find(t.Context(), d.path)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(printed)), found.URL)
	require.ErrorIs(t, syscall.Kill(-child.Process.Pid, 0), syscall.ESRCH,
		"a Ctrl-C at the starter's terminal would reach the server")
}

func TestStartWithAURLStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)

	given, err := Start(t.Context(), Options{URL: s.URL})
	require.NoError(t, err)
	require.Equal(t, &Server{URL: s.URL, How: "the server of DATABASE_URL"}, given)

	_, err = Start(t.Context(), Options{URL: s.URL + "&user=nobody-knows-me", URLVariable: "TEST_DATABASE_URL"})
	require.ErrorContains(t, err, "TEST_DATABASE_URL is set, but its server cannot be used")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	aside, err := Describe(t.Context(), s.URL)
	require.NoError(t, err)
	require.Contains(t, []string{Apache, Community}, aside.Edition)
	require.NoError(t, sufficient(aside.TimescaleDB))
	require.Equal(t, "0", query(t, s.URL, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'roomsensor_probe%'"))

	execute(t, s.URL, "CREATE EXTENSION timescaledb")
	inside, err := Describe(t.Context(), s.URL)
	require.NoError(t, err)
	require.Equal(t, aside, inside)
}
