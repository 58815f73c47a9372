package postgres

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// query returns the text that an SQL statement returns.
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

// TestServer starts a server from several parts of this process at the same time and reads what is true of any server.
func TestServer(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	_, err := Find(t.Context(), d.path)
	require.ErrorIs(t, err, ErrNotRunning)
	o := options(t, d)
	o.Settings["application_name"] = "it's"
	servers := make([]*Server, 4)
	var group sync.WaitGroup
	for i := range servers {
		group.Go(func() {
			var err error
			if servers[i], err = Start(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s := servers[0]
	require.NotNil(t, s)

	t.Run("concurrent starts give one server", func(t *testing.T) {
		started := 0
		for _, other := range servers {
			require.NotNil(t, other)
			require.Equal(t, s.URL, other.URL)
			if other.Started {
				started++
			}
		}
		require.Equal(t, 1, started)
		found, err := Find(t.Context(), d.path)
		require.NoError(t, err)
		require.Equal(t, &Server{URL: s.URL, How: s.How, DataDir: d.path}, found)
	})
	t.Run("edition and versions, without the extension", func(t *testing.T) {
		info, err := Describe(t.Context(), s.URL)
		require.NoError(t, err)
		require.Contains(t, []string{Apache, Community}, info.Edition)
		require.NoError(t, sufficient(info.TimescaleDB))
		require.Equal(t, "0", query(t, s.URL, "SELECT count(*)::text FROM pg_extension WHERE extname = 'timescaledb'"))
		execute(t, s.URL, "CREATE EXTENSION timescaledb; CREATE EXTENSION btree_gist")
		again, err := Describe(t.Context(), s.URL)
		require.NoError(t, err)
		require.Equal(t, info, again, "with the extension")
	})
	t.Run("settings", func(t *testing.T) {
		for name, want := range testSettings {
			require.Equal(t, want, query(t, s.URL, "SELECT current_setting('"+name+"')"))
		}
		require.Equal(t, "it's", query(t, s.URL, "SELECT reset_val FROM pg_settings WHERE name = 'application_name'"))
		require.Equal(t, "off", query(t, s.URL, "SELECT current_setting('timescaledb.telemetry_level')"))
		require.Equal(t, "on", query(t, s.URL, "SELECT current_setting('synchronous_commit')"))
		// Only costly queries load this library. They fail if it misses one of its own.
		query(t, s.URL, "SELECT pg_jit_available()::text")
	})
	t.Run("it requires the password", func(t *testing.T) {
		config, err := pgx.ParseConfig(s.URL)
		require.NoError(t, err)
		config.Password = "guessed"
		_, err = pgx.ConnectConfig(t.Context(), config)
		require.ErrorContains(t, err, "28P01")
	})
	t.Run("its files are private", func(t *testing.T) {
		for name, want := range map[string]os.FileMode{"server.json": 0o600, "server.log": 0o600, "pgdata": 0o700} {
			info, err := os.Stat(d.file(name))
			if errors.Is(err, os.ErrNotExist) {
				t.Skip("needs a PostgreSQL with TimescaleDB on the machine itself")
			}
			require.NoError(t, err)
			require.Equal(t, want, info.Mode().Perm(), name)
		}
		require.NoFileExists(t, d.file("pgdata.password"))
	})
	t.Run("with a URL, Start starts nothing", func(t *testing.T) {
		given, err := Start(t.Context(), Options{URL: s.URL})
		require.NoError(t, err)
		require.Equal(t, &Server{URL: s.URL, How: "the server of DATABASE_URL"}, given)
		_, err = Start(t.Context(), Options{URL: s.URL + "&user=nobody-knows-me", URLVariable: "TEST_DATABASE_URL"})
		require.ErrorContains(t, err, "TEST_DATABASE_URL is set, but its server cannot be used")
	})
	t.Run("a broken installation", func(t *testing.T) { testInspect(t, d) })
}

// testInspect uses a link to the server program of d, with control files of its own beside it.
func testInspect(t *testing.T, d *dataDir) {
	t.Helper()
	st, err := d.load()
	require.NoError(t, err)
	if st.Bin == "" {
		t.Skip("needs a PostgreSQL with TimescaleDB on the machine itself")
	}
	in, err := inspect(t.Context(), st.Bin)
	require.NoError(t, err)
	require.GreaterOrEqual(t, in.major, minPostgres)

	prefix := t.TempDir()
	bin := filepath.Join(prefix, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	_, err = inspect(t.Context(), bin)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.Symlink(filepath.Join(st.Bin, "postgres"), filepath.Join(bin, "postgres")))
	_, err = inspect(t.Context(), bin)
	require.ErrorContains(t, err, "does not have the extension timescaledb")

	extensions := filepath.Join(prefix, "share", "extension")
	require.NoError(t, os.MkdirAll(extensions, 0o700))
	control := filepath.Join(extensions, "timescaledb.control")
	require.NoError(t, os.WriteFile(control, []byte("# A comment\ndefault_version = '2.11.0'\n"), 0o600))
	_, err = inspect(t.Context(), bin)
	require.ErrorContains(t, err, "2.11.0")

	require.NoError(t, os.WriteFile(control, []byte("default_version = '2.30.0'\n"), 0o600))
	_, err = inspect(t.Context(), bin)
	require.ErrorContains(t, err, "btree_gist")
}

func TestServerOutlivesItsStarter(t *testing.T) {
	t.Parallel()
	d := newDataDir(t)
	//nolint:gosec // It is this test binary.
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+d.path)
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Stderr = t.Output()
	// Unlike a buffer, a pipe shows whether the server keeps it open.
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
