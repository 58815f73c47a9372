package postgres

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/filelock"
)

// childDir makes this test binary a process that starts the server of a data directory and ends.
const childDir = "LOCALDB_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		s, err := Start(context.Background(), Options{DataDir: dir, Progress: os.Stderr, Settings: testSettings})
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, s.URL)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// testSettings are those of a server whose data may be lost in a crash of the machine.
var testSettings = map[string]string{
	"fsync": "off", "full_page_writes": "off", "timescaledb.max_background_workers": "0",
}

// newDataDir returns a directory that PostgreSQL can enter. Its server ends with the test. Its lock keeps the tests of
// other packages from removing it as abandoned.
func newDataDir(t *testing.T) *dataDir {
	t.Helper()
	parent, err := Dir("tests")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(parent, 0o755))
	unlock, err := filelock.Lock(t.Context(), filepath.Join(parent, "lock"), func() {})
	require.NoError(t, err)
	defer unlock()
	path, err := os.MkdirTemp(parent, "run-") //nolint:usetesting // PostgreSQL cannot enter the directories of t.TempDir.
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o755))
	release, err := filelock.Try(filepath.Join(path, "owner"))
	require.NoError(t, err)
	t.Cleanup(func() {
		defer release()
		require.NoError(t, Remove(context.Background(), path))
		require.NoError(t, os.RemoveAll(path))
	})
	return &dataDir{path: path}
}

// options returns the options of a server in a directory.
func options(t *testing.T, d *dataDir) Options {
	t.Helper()
	return Options{DataDir: d.path, Settings: maps.Clone(testSettings), Progress: t.Output()}
}

// newCluster starts a server on the machine itself, also if Docker could run one.
func newCluster(t *testing.T) *dataDir {
	t.Helper()
	d := newDataDir(t)
	s := starter{dir: d, options: options(t, d), progress: &command.Progress{W: t.Output()}}
	st, err := s.startInstalled(t.Context())
	if err != nil {
		st, err = s.startCopy(t.Context())
	}
	if err != nil {
		t.Skip("needs a PostgreSQL with TimescaleDB on the machine itself")
	}
	require.NoError(t, createDatabase(t.Context(), st.url()))
	return d
}
