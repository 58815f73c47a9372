package localdb

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childDir makes this test binary a process that starts the server of a data directory and ends.
const childDir = "LOCALDB_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		s, err := Start(context.Background(), Options{DataDir: dir, Progress: os.Stderr, Settings: ForTests()})
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, s.URL)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newDataDir returns a directory that PostgreSQL can reach; its server ends with the test.
func newDataDir(t *testing.T) *dataDir {
	t.Helper()
	parent, err := inBase("tests")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(parent, 0o755))
	path, release, err := temporaryDir(t.Context(), parent, &progress{w: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() {
		defer release()
		require.NoError(t, removeTemporary(context.Background(), path))
	})
	return &dataDir{path: path}
}

// options are those of a server for tests in a directory.
func options(t *testing.T, d *dataDir) Options {
	t.Helper()
	return Options{DataDir: d.path, Settings: ForTests(), Progress: t.Output()}
}

// newCluster starts a server on the machine itself, also where Docker could run one.
func newCluster(t *testing.T) *dataDir {
	t.Helper()
	d := newDataDir(t)
	s := starter{dir: d, options: options(t, d), progress: &progress{w: t.Output()}}
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
