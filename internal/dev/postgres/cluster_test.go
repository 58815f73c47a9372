package postgres

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
)

// TestRestart stops and starts one server while its surroundings change.
func TestRestart(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	start := func(t *testing.T) *Server {
		t.Helper()
		s, err := Start(t.Context(), options(t, d))
		require.NoError(t, err)
		return s
	}
	stop := func(t *testing.T) *state {
		t.Helper()
		st, err := d.load()
		require.NoError(t, err)
		require.NoError(t, Stop(t.Context(), d.path))
		return st
	}
	first, err := Find(t.Context(), d.path)
	require.NoError(t, err)
	execute(t, first.URL, "CREATE TABLE kept AS SELECT 1 AS n")

	t.Run("the data and the URL stay", func(t *testing.T) {
		stop(t)
		require.NoError(t, Stop(t.Context(), d.path), "stopping twice is not an error")
		_, err := Find(t.Context(), d.path)
		require.ErrorIs(t, err, ErrNotRunning)
		again := start(t)
		require.True(t, again.Started)
		require.Equal(t, first.URL, again.URL)
		require.Equal(t, "1", query(t, again.URL, "SELECT n::text FROM kept"))
	})
	t.Run("the last start ended before it created the database", func(t *testing.T) {
		st, err := d.load()
		require.NoError(t, err)
		execute(t, st.urlOf("postgres"), "DROP DATABASE "+database)
		s := start(t)
		require.False(t, s.Started)
		require.Equal(t, database, query(t, s.URL, "SELECT current_database()"))
	})
	t.Run("another process uses the port", func(t *testing.T) {
		st := stop(t)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(st.Port)))
		require.NoError(t, err)
		require.NotContains(t, start(t).URL, strconv.Itoa(st.Port))
		require.NoError(t, listener.Close())
	})
	t.Run("the programs moved", func(t *testing.T) {
		st := stop(t)
		st.Bin = "/nowhere/bin"
		require.NoError(t, d.save(st))
		start(t)
	})
	t.Run("no programs of this version", func(t *testing.T) {
		st := stop(t)
		version, err := os.ReadFile(d.file("pgdata/PG_VERSION"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.file("pgdata/PG_VERSION"), []byte("14\n"), 0o600))
		moved := *st
		moved.Bin = "/nowhere/bin"
		require.NoError(t, d.save(&moved))
		_, err = Start(t.Context(), options(t, d))
		require.ErrorContains(t, err, "is of PostgreSQL 14")
		require.NoError(t, os.WriteFile(d.file("pgdata/PG_VERSION"), version, 0o600)) //nolint:gosec // A file of this test.
		require.NoError(t, d.save(st))
	})
	t.Run("the password is lost", func(t *testing.T) {
		st, err := d.load()
		require.NoError(t, err)
		require.NoError(t, os.Remove(d.file("server.json")))
		in, err := inspect(t.Context(), st.Bin)
		require.NoError(t, err)
		_, err = starter{dir: d, options: options(t, d), progress: &command.Progress{}}.startCluster(t.Context(), in, nil)
		require.ErrorContains(t, err, "server.json with its password is gone")
		require.DirExists(t, d.file("pgdata"))
		require.NoError(t, d.save(st))
	})
	t.Run("Remove keeps other files", func(t *testing.T) {
		require.NoError(t, os.WriteFile(d.file("notes.txt"), []byte("mine"), 0o600))
		require.NoError(t, Remove(t.Context(), d.path))
		var names []string
		left, err := os.ReadDir(d.path)
		require.NoError(t, err)
		for _, entry := range left {
			names = append(names, entry.Name())
		}
		require.Equal(t, []string{"notes.txt", "owner"}, names)
	})
}

// TestStartAfterACrash kills the first process of one server again and again.
func TestStartAfterACrash(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	st, err := d.load()
	require.NoError(t, err)
	execute(t, st.url(), "CREATE TABLE kept AS SELECT 1 AS n")
	crash := func(t *testing.T) {
		t.Helper()
		pid, ok := d.postmaster()
		require.True(t, ok)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		require.Eventually(t, func() bool { _, runs := d.postmaster(); return !runs }, 30*time.Second, pollInterval)
		require.FileExists(t, d.pidFile())
	}

	t.Run("what was committed is there", func(t *testing.T) {
		crash(t)
		_, err = Find(t.Context(), d.path)
		require.ErrorIs(t, err, ErrNotRunning)
		s, err := Start(t.Context(), options(t, d))
		require.NoError(t, err)
		require.Equal(t, "1", query(t, s.URL, "SELECT n::text FROM kept"))
	})
	t.Run("another process has the number", func(t *testing.T) {
		crash(t)
		pidFile, err := os.ReadFile(d.pidFile())
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(pidFile), "\n")
		// The process of this test is alive, and has the same user unless the tests run as root.
		//nolint:gosec // A file of this test.
		require.NoError(t, os.WriteFile(d.pidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600))
		require.NoError(t, Stop(t.Context(), d.path), "the process of this test must survive")
		s, err := Start(t.Context(), options(t, d))
		require.NoError(t, err)
		require.True(t, s.Started)
	})
	t.Run("processes of the server still run", func(t *testing.T) {
		st, err := d.load()
		require.NoError(t, err)
		writer, err := strconv.Atoi(query(t, st.url(),
			"SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'"))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(writer, syscall.SIGSTOP))
		crash(t)
		// A suspended process is like one that waits for a lock: it does not notice that the server is gone.
		_, err = Start(t.Context(), options(t, d))
		require.NoError(t, err)
	})
}
