package localdb

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crash kills the server of a directory as a power cut would, and waits until it is gone.
func crash(t *testing.T, d *dataDir) {
	t.Helper()
	pid, ok := d.postmaster()
	require.True(t, ok)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	for ok {
		require.NoError(t, pause(t.Context(), pollInterval))
		_, ok = d.postmaster()
	}
	require.FileExists(t, d.pidFile())
}

func TestStartAfterACrash(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	before, err := d.load()
	require.NoError(t, err)
	execute(t, before.url(), "CREATE TABLE kept AS SELECT 1 AS n")
	crash(t, d)

	_, err = Find(t.Context(), d.path)
	require.ErrorIs(t, err, ErrNotRunning)
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.Equal(t, "1", query(t, s.URL, "SELECT n::text FROM kept"))
}

func TestStartAfterACrashWhoseProcessNumberIsSomebodyElses(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	crash(t, d)
	pidFile, err := os.ReadFile(d.pidFile())
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(pidFile), "\n")
	// The process of this test: alive, and of the same user where the tests do not run as root.
	//nolint:gosec // A path of this test.
	require.NoError(t, os.WriteFile(d.pidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600))

	require.NoError(t, Stop(t.Context(), d.path), "and this process lives on")
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.True(t, s.Started)
}

func TestStartWaitsForWhatACrashedServerLeftRunning(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	st, err := d.load()
	require.NoError(t, err)
	writer, err := strconv.Atoi(query(t, st.url(),
		"SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(writer, syscall.SIGSTOP))
	crash(t, d)

	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = Start(short, options(t, d))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, syscall.Kill(writer, syscall.SIGCONT))
	_, err = Start(t.Context(), options(t, d))
	require.NoError(t, err)
}

func TestStartWhenThePortWasTaken(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	before, err := d.load()
	require.NoError(t, err)
	require.NoError(t, Stop(t.Context(), d.path))
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(before.Port)))
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()

	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.NotContains(t, s.URL, strconv.Itoa(before.Port))
}

func TestStartWithoutThePassword(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	require.NoError(t, Stop(t.Context(), d.path))
	require.NoError(t, os.Remove(d.file("server.json")))
	in, err := inspect(t.Context(), runningBin(t))
	require.NoError(t, err)

	_, err = starter{dir: d, options: options(t, d), progress: &progress{}}.startCluster(t.Context(), in, nil)
	require.ErrorContains(t, err, "server.json with its password is gone")
	require.DirExists(t, d.file("pgdata"))
}

// runningBin returns the programs of a PostgreSQL with TimescaleDB.
func runningBin(t *testing.T) string {
	t.Helper()
	st, err := newCluster(t).load()
	require.NoError(t, err)
	return st.Bin
}

func TestStartWithOtherProgramsOfTheSameVersion(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	require.NoError(t, Stop(t.Context(), d.path))
	st, err := d.load()
	require.NoError(t, err)
	st.Bin = "/nowhere/bin"
	require.NoError(t, d.save(st))
	_, err = Start(t.Context(), options(t, d))
	require.NoError(t, err)

	require.NoError(t, Stop(t.Context(), d.path))
	require.NoError(t, os.WriteFile(d.file("pgdata/PG_VERSION"), []byte("14\n"), 0o600))
	require.NoError(t, d.save(st))
	_, err = Start(t.Context(), options(t, d))
	require.ErrorContains(t, err, "is of PostgreSQL 14")
}

func TestServerLeavesNoSecretsToOthers(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	for name, want := range map[string]os.FileMode{"server.json": 0o600, "server.log": 0o600, "pgdata": 0o700} {
		info, err := os.Stat(d.file(name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
	require.NoFileExists(t, d.file("pgdata.password"))
}

func TestRemoveKeepsWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	require.NoError(t, os.WriteFile(d.file("notes.txt"), []byte("mine"), 0o600))
	require.NoError(t, Remove(t.Context(), d.path))
	left, err := os.ReadDir(d.path)
	require.NoError(t, err)
	names := make([]string, 0, len(left))
	for _, entry := range left {
		names = append(names, entry.Name())
	}
	require.Equal(t, []string{"notes.txt", "owner"}, names)
}

// TestStartAfterAStartThatWasInterrupted has a server without the database that is made last.
func TestStartAfterAStartThatWasInterrupted(t *testing.T) {
	t.Parallel()
	d := newCluster(t)
	st, err := d.load()
	require.NoError(t, err)
	execute(t, st.urlOf("postgres"), "DROP DATABASE "+database)
	s, err := Start(t.Context(), options(t, d))
	require.NoError(t, err)
	require.False(t, s.Started)
	require.Equal(t, database, query(t, s.URL, "SELECT current_database()"))
}
