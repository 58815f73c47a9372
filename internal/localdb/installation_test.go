package localdb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSufficient(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"":             "does not have the extension",
		"2.19.0":       "",
		"2.29.0-dev":   "",
		"3.0":          "",
		"10":           "",
		"2.18.2":       "is 2.18.2 and 2.19 is the oldest that works",
		"1.99":         "is 1.99 and 2.19 is the oldest that works",
		"2":            "is 2 and 2.19 is the oldest that works",
		"not a number": "is the oldest that works",
	} {
		err := sufficient(version)
		if want == "" {
			require.NoError(t, err, version)
			continue
		}
		require.ErrorContains(t, err, want, version)
	}
}

// TestInspect looks at the programs of this machine through links to some of them and files of its own beside them.
func TestInspect(t *testing.T) {
	t.Parallel()
	programs := runningBin(t)
	in, err := inspect(t.Context(), programs)
	require.NoError(t, err)
	require.GreaterOrEqual(t, in.major, minPostgres)

	prefix := t.TempDir()
	bin := filepath.Join(prefix, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	_, err = inspect(t.Context(), bin)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.Symlink(filepath.Join(programs, "postgres"), filepath.Join(bin, "postgres")))
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

func TestFailureNamesTheFourWays(t *testing.T) {
	t.Parallel()
	s := starter{options: Options{URLVariable: "TEST_DATABASE_URL"}}
	err := s.failure(s.ways(), []string{"not set", "none installed", "no engine", "no Debian"})
	for _, part := range []string{
		"1. set TEST_DATABASE_URL", "(now: not set)", "2. install PostgreSQL 15 or later", "(now: none installed)",
		"3. start Docker", image(), "(now: no engine)", "4. on Debian or Ubuntu", "mmdebstrap, patchelf", "(now: no Debian)",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestStartInADirectoryThatPostgreSQLCannotEnter(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, as which PostgreSQL runs under another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "data"), 0o700))
	as, err := accountFor(closed)
	require.NoError(t, err)
	require.ErrorContains(t, as.reach(t.Context(), filepath.Join(closed, "data")), "choose another directory")
}

func TestCommandShowsTheEndOfWhatItPrinted(t *testing.T) {
	t.Parallel()
	_, err := command{
		step: "counting", argv: []string{"/bin/sh", "-c", "seq 10000; exit 3"}, dir: "/", limit: startTimeout,
	}.run(t.Context(), &progress{})
	require.ErrorContains(t, err, "counting: exit status 3\n    ")
	require.ErrorContains(t, err, "\n    10000")
	require.Less(t, len(err.Error()), 2*outputKept)
}
